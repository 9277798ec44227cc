// Records what Kueue's own scheduler decides, as data: put into the package of the scheduler with `go test -overlay`.
//
// Every first call of `schedule` in a test of Kueue's tables is one case of one cycle; worlds of one's own
// (TASKGOV_WORLDS) are played for several cycles. A case is one line of JSON in the file that TASKGOV_RECORD names.
package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/features"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/util/routine"
	utiltesting "sigs.k8s.io/kueue/pkg/util/testing"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
)

type taskgovConfig struct {
	FairSharing bool            `json:"fairSharing"`
	Strategies  []string        `json:"strategies"`
	Gates       map[string]bool `json:"gates"`
}

type taskgovPodSet struct {
	Name    string            `json:"name"`
	Count   *int32            `json:"count"`
	Flavors map[string]string `json:"flavors"`
	Usage   map[string]string `json:"usage"`
}

type taskgovHeld struct {
	CQ      string          `json:"cq"`
	PodSets []taskgovPodSet `json:"podSets"`
}

type taskgovCycle struct {
	Assignments  map[string]taskgovHeld `json:"assignments"`
	Preempted    [][3]string            `json:"preempted"`
	Pending      map[string][2]string   `json:"pending"`
	Left         map[string][]string    `json:"left"`
	Inadmissible map[string][]string    `json:"inadmissible"`
}

type taskgovCase struct {
	Name     string              `json:"name"`
	Set      string              `json:"set"`
	Now      string              `json:"now"`
	Cycles   int                 `json:"cycles"`
	Config   taskgovConfig       `json:"config"`
	Objects  []map[string]any    `json:"objects"`
	Finish   map[string][]string `json:"finish"`
	Skipped  string              `json:"skipped,omitempty"`
	Expected struct {
		Cycles []taskgovCycle `json:"cycles"`
	} `json:"expected"`
}

var (
	taskgovCohorts = map[*schdcache.Cache][]*kueue.Cohort{}
	taskgovSeen    = map[string]bool{}
	taskgovWriting sync.Mutex
)

// taskgovCohort stands in for the cache's method, which keeps no object that could be read back.
func taskgovCohort(cache *schdcache.Cache, cohort *kueue.Cohort) error {
	taskgovCohorts[cache] = append(taskgovCohorts[cache], cohort.DeepCopy())
	return cache.AddOrUpdateCohort(cohort)
}

type taskgovWrapper struct {
	inner routine.Wrapper
	done  *sync.WaitGroup
}

func (w taskgovWrapper) Run(f func()) {
	w.done.Add(1)
	w.inner.Run(func() { defer w.done.Done(); f() })
}

// taskgovSchedule stands in for the scheduler's method: the first cycle of each test is recorded.
func taskgovSchedule(t *testing.T, s *Scheduler, ctx context.Context) {
	out := os.Getenv("TASKGOV_RECORD")
	if out == "" || taskgovSeen[t.Name()] {
		s.schedule(ctx)
		return
	}
	taskgovSeen[t.Name()] = true
	made := taskgovCase{Name: t.Name(), Set: "kueue-tables", Now: s.clock.Now().UTC().Format(time.RFC3339), Cycles: 1}
	made.Config = taskgovSettings(s)
	made.Objects = taskgovObjects(ctx, t, s)
	before := taskgovWorkloads(ctx, t, s.client)
	if len(s.queues.DumpInadmissible()) > 0 {
		made.Skipped = "somebody is inadmissible before the first cycle"
	}
	if s.admissionFairSharing != nil {
		made.Skipped = "admission fair sharing"
	}
	made.Expected.Cycles = []taskgovCycle{}
	heads := taskgovHeads(s)
	taskgovCycleOf(s, ctx)
	if heads {
		made.Expected.Cycles = append(made.Expected.Cycles, taskgovState(ctx, t, s, before))
	}
	taskgovWrite(t, out, made)
}

func taskgovHeads(s *Scheduler) bool {
	for queue, keys := range s.queues.Dump() {
		if len(keys) > 0 && s.cache.ClusterQueueActive(queue) {
			return true
		}
	}
	return false
}

func taskgovCycleOf(s *Scheduler, ctx context.Context) {
	var done sync.WaitGroup
	inner := s.admissionRoutineWrapper
	s.setAdmissionRoutineWrapper(taskgovWrapper{inner, &done})
	s.schedule(ctx)
	done.Wait()
	s.setAdmissionRoutineWrapper(inner)
}

func taskgovSettings(s *Scheduler) taskgovConfig {
	found := taskgovConfig{FairSharing: s.fairSharing != nil, Gates: map[string]bool{}, Strategies: []string{}}
	if s.fairSharing != nil {
		for _, strategy := range s.fairSharing.PreemptionStrategies {
			found.Strategies = append(found.Strategies, string(strategy))
		}
	}
	for gate, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if gate == features.WorkloadRequestUseMergePatch || gate == "AllAlpha" || gate == "AllBeta" {
			continue
		}
		if on := features.Enabled(gate); on != spec.Default {
			found.Gates[string(gate)] = on
		}
	}
	return found
}

func taskgovObjects(ctx context.Context, t *testing.T, s *Scheduler) []map[string]any {
	var found []map[string]any
	add := func(kind string, object any) {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		plain := map[string]any{}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		if kind == "ClusterQueue" {
			taskgovUnset(plain)
		}
		plain["kind"] = kind
		plain["apiVersion"] = "kueue.x-k8s.io/v1beta2"
		found = append(found, plain)
	}
	list := func(into client.ObjectList) {
		if err := s.client.List(ctx, into); err != nil {
			t.Logf("not listed: %v", err)
		}
	}
	var namespaces corev1.NamespaceList
	list(&namespaces)
	for i := range namespaces.Items {
		add("Namespace", &namespaces.Items[i])
	}
	var limits corev1.LimitRangeList
	list(&limits)
	for i := range limits.Items {
		add("LimitRange", &limits.Items[i])
	}
	var classes nodev1.RuntimeClassList
	list(&classes)
	for i := range classes.Items {
		add("RuntimeClass", &classes.Items[i])
	}
	snapshot, err := s.cache.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(snapshot.ResourceFlavors)) {
		add("ResourceFlavor", snapshot.ResourceFlavors[name])
	}
	for _, cohort := range taskgovCohorts[s.cache] {
		add("Cohort", cohort)
	}
	var queues kueue.ClusterQueueList
	list(&queues)
	for i := range queues.Items {
		add("ClusterQueue", &queues.Items[i])
	}
	var locals kueue.LocalQueueList
	list(&locals)
	for i := range locals.Items {
		add("LocalQueue", &locals.Items[i])
	}
	workloads := taskgovWorkloads(ctx, t, s.client)
	for i := range workloads {
		add("Workload", &workloads[i])
	}
	return found
}

// taskgovUnset writes policies that a test leaves unset: Go's empty text is not the default of the API server.
func taskgovUnset(queue map[string]any) {
	spec, _ := queue["spec"].(map[string]any)
	if rules, set := spec["preemption"].(map[string]any); set {
		for _, policy := range []string{"withinClusterQueue", "reclaimWithinCohort"} {
			if _, given := rules[policy]; !given {
				rules[policy] = ""
			}
		}
	}
}

func taskgovWorkloads(ctx context.Context, t *testing.T, c client.Client) []kueue.Workload {
	var found kueue.WorkloadList
	if err := c.List(ctx, &found); err != nil {
		t.Fatal(err)
	}
	return found.Items
}

func taskgovState(ctx context.Context, t *testing.T, s *Scheduler, before []kueue.Workload) taskgovCycle {
	found := taskgovCycle{
		Assignments: map[string]taskgovHeld{}, Preempted: [][3]string{}, Pending: map[string][2]string{},
		Left: taskgovNames(s.queues.Dump()), Inadmissible: taskgovNames(s.queues.DumpInadmissible()),
	}
	gone := map[string]bool{}
	for i := range before {
		gone[string(workload.Key(&before[i]))] = workloadevict.IsEvicted(&before[i])
	}
	items := taskgovWorkloads(ctx, t, s.client)
	for i := range items {
		wl, key := &items[i], string(workload.Key(&items[i]))
		if wl.Status.Admission != nil {
			found.Assignments[key] = taskgovAdmission(wl.Status.Admission)
		}
		if workloadfinish.IsFinished(wl) {
			continue
		}
		if workloadevict.IsEvicted(wl) && !gone[key] {
			if told := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadPreempted); told != nil {
				found.Preempted = append(found.Preempted, [3]string{key, told.Reason, told.Message})
			}
		}
		told := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		if told != nil && told.Status == "False" {
			found.Pending[key] = [2]string{told.Reason, told.Message}
		}
	}
	return found
}

func taskgovAdmission(admission *kueue.Admission) taskgovHeld {
	held := taskgovHeld{CQ: string(admission.ClusterQueue)}
	for _, assigned := range admission.PodSetAssignments {
		podSet := taskgovPodSet{Name: string(assigned.Name), Count: assigned.Count}
		podSet.Flavors, podSet.Usage = map[string]string{}, map[string]string{}
		for resource, flavor := range assigned.Flavors {
			podSet.Flavors[string(resource)] = string(flavor)
		}
		for resource, amount := range assigned.ResourceUsage {
			podSet.Usage[string(resource)] = amount.String()
		}
		held.PodSets = append(held.PodSets, podSet)
	}
	return held
}

func taskgovNames[Q ~string, W ~string](dump map[Q][]W) map[string][]string {
	found := map[string][]string{}
	for queue, keys := range dump {
		for _, key := range keys {
			found[string(queue)] = append(found[string(queue)], string(key))
		}
		slices.Sort(found[string(queue)])
	}
	return found
}

func taskgovWrite(t *testing.T, out string, made taskgovCase) {
	taskgovWriting.Lock()
	defer taskgovWriting.Unlock()
	line, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// TestTaskgovWorlds plays worlds of one's own: cycles a second apart, and after each what Kueue's controllers do.
func TestTaskgovWorlds(t *testing.T) {
	given, out := os.Getenv("TASKGOV_WORLDS"), os.Getenv("TASKGOV_RECORD")
	if given == "" || out == "" {
		t.Skip("no worlds are given")
	}
	raw, err := os.ReadFile(given)
	if err != nil {
		t.Fatal(err)
	}
	var worlds []taskgovCase
	if err := json.Unmarshal(raw, &worlds); err != nil {
		t.Fatal(err)
	}
	for _, world := range worlds {
		t.Run(world.Name, func(t *testing.T) { taskgovWrite(t, out, taskgovPlay(t, world)) })
	}
}

func taskgovPlay(t *testing.T, world taskgovCase) taskgovCase {
	for gate, on := range world.Config.Gates {
		features.SetFeatureGateDuringTest(t, featuregate.Feature(gate), on)
	}
	ctx, log := utiltesting.ContextWithLog(t)
	now, err := time.Parse(time.RFC3339, world.Now)
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(now)
	read := taskgovRead(t, world.Objects)
	cl := utiltesting.NewClientBuilder().WithObjects(read.stored...).WithStatusSubresource(&kueue.Workload{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: utiltesting.TreatSSAAsStrategicMerge}).Build()
	cache := schdcache.New(cl)
	expected := preemptexpectations.New()
	queues, watcher := qcache.NewManagerForUnitTestsWithRequeuer(cl, cache, qcache.WithPreemptionExpectations(expected))
	for i := range read.flavors {
		cache.AddOrUpdateResourceFlavor(log, &read.flavors[i])
	}
	for i := range read.cohorts {
		if err := cache.AddOrUpdateCohort(&read.cohorts[i]); err != nil {
			t.Fatal(err)
		}
		queues.AddOrUpdateCohort(ctx, &read.cohorts[i])
	}
	for i := range read.queues {
		if err := cache.AddClusterQueue(ctx, &read.queues[i]); err != nil {
			t.Fatal(err)
		}
		if err := queues.AddClusterQueue(ctx, &read.queues[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range read.locals {
		if err := queues.AddLocalQueue(ctx, &read.locals[i]); err != nil {
			t.Fatal(err)
		}
	}
	taskgovKnow(ctx, t, queues, cl)
	var sharing *config.FairSharing
	if world.Config.FairSharing {
		sharing = &config.FairSharing{}
		for _, strategy := range world.Config.Strategies {
			sharing.PreemptionStrategies = append(sharing.PreemptionStrategies, config.PreemptionStrategy(strategy))
		}
	}
	scheduler := New(queues, cache, cl, &utiltesting.EventRecorder{}, WithFairSharing(sharing),
		WithClock(t, clock), WithPreemptionExpectations(expected))
	watcher.ProcessRequeues(ctx) // what was added gives nobody another look after the first cycle
	world.Expected.Cycles = []taskgovCycle{}
	for range world.Cycles {
		if !taskgovHeads(scheduler) {
			break
		}
		before := taskgovWorkloads(ctx, t, cl)
		taskgovCycleOf(scheduler, ctx)
		world.Expected.Cycles = append(world.Expected.Cycles, taskgovState(ctx, t, scheduler, before))
		ended := world.Finish[fmt.Sprint(len(world.Expected.Cycles))]
		taskgovControl(ctx, t, scheduler, before, ended)
		watcher.ProcessRequeues(ctx)
		clock.Step(time.Second)
	}
	return world
}

// taskgovKnow lets the manager know the queues of workloads that run already, as if it had admitted them itself.
func taskgovKnow(ctx context.Context, t *testing.T, queues *qcache.Manager, cl client.Client) {
	log := utiltesting.NewLogger(t)
	for _, wl := range taskgovWorkloads(ctx, t, cl) {
		if workload.HasQuotaReservation(&wl) {
			waiting := wl.DeepCopy()
			waiting.Status = kueue.WorkloadStatus{}
			_ = queues.AddOrUpdateWorkload(log, waiting)
			queues.DeleteWorkload(log, workload.Key(&wl))
		}
	}
}

// taskgovControl does what the controllers do: they note admissions, end evictions, and let go of what is finished.
func taskgovControl(ctx context.Context, t *testing.T, s *Scheduler, before []kueue.Workload, ended []string) {
	log, now := utiltesting.NewLogger(t), s.clock.Now()
	items := taskgovWorkloads(ctx, t, s.client)
	for i := range items {
		wl, key := &items[i], workload.Key(&items[i])
		held := slices.ContainsFunc(before, func(b kueue.Workload) bool {
			return workload.Key(&b) == key && workload.HasQuotaReservation(&b)
		})
		done := func() { _ = s.cache.DeleteWorkload(log, key) }
		over := slices.ContainsFunc(before, func(b kueue.Workload) bool {
			return workload.Key(&b) == key && workloadfinish.IsFinished(&b)
		})
		switch {
		case over:
		case workloadfinish.IsFinished(wl) || slices.Contains(ended, string(key)):
			if !workloadfinish.IsFinished(wl) {
				if err := workloadfinish.Finish(ctx, s.client, wl, "Succeeded", "done", s.clock); err != nil {
					t.Fatal(err)
				}
			}
			s.queues.DeleteWorkload(log, key)
			s.queues.QueueAssociatedInadmissibleWorkloadsAfter(ctx, key, done)
		case workloadevict.IsEvicted(wl) && workload.HasQuotaReservation(wl):
			told := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
			reason := workload.UnadmittedWorkloadReasonWithFallback(kueue.WorkloadQuotaReservedReasonPendingEvaluation, "Pending")
			workload.SetRequeuedCondition(wl, told.Reason, told.Message, true)
			workload.UnsetQuotaReservationWithCondition(wl, reason, told.Message, now)
			if err := s.client.Status().Update(ctx, wl); err != nil {
				t.Fatal(err)
			}
			s.queues.QueueAssociatedInadmissibleWorkloadsAfter(ctx, key, func() {
				done()
				_ = s.queues.AddOrUpdateWorkloadWithoutLock(log, wl)
			})
		case workload.HasQuotaReservation(wl) && !held:
			s.queues.DeleteWorkload(log, key)
			s.cache.AddOrUpdateWorkload(log, wl)
		}
	}
}

type taskgovWorld struct {
	stored  []client.Object
	flavors []kueue.ResourceFlavor
	cohorts []kueue.Cohort
	queues  []kueue.ClusterQueue
	locals  []kueue.LocalQueue
}

func taskgovRead(t *testing.T, objects []map[string]any) taskgovWorld {
	var found taskgovWorld
	for _, object := range objects {
		switch object["kind"] {
		case "Namespace":
			found.stored = append(found.stored, taskgovTyped[corev1.Namespace](t, object))
		case "ResourceFlavor":
			found.flavors = append(found.flavors, *taskgovTyped[kueue.ResourceFlavor](t, object))
		case "Cohort":
			found.cohorts = append(found.cohorts, *taskgovTyped[kueue.Cohort](t, object))
		case "ClusterQueue":
			found.queues = append(found.queues, *taskgovTyped[kueue.ClusterQueue](t, object))
			found.stored = append(found.stored, taskgovTyped[kueue.ClusterQueue](t, object))
		case "LocalQueue":
			found.locals = append(found.locals, *taskgovTyped[kueue.LocalQueue](t, object))
			found.stored = append(found.stored, taskgovTyped[kueue.LocalQueue](t, object))
		case "Workload":
			found.stored = append(found.stored, taskgovTyped[kueue.Workload](t, object))
		}
	}
	return found
}

func taskgovTyped[T any](t *testing.T, object map[string]any) *T {
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	typed := new(T)
	if err := json.Unmarshal(raw, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}
