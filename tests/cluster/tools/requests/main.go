// Asks Kueue's own packages what a workload's pods ask for, why it is refused, and how usage decays: one case a line,
// as JSON, in and out. tests/cluster/test_requests.py compares the answers with the model's.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/resources"
	fairsharing "sigs.k8s.io/kueue/pkg/util/admissionfairsharing"
	"sigs.k8s.io/kueue/pkg/workload"
)

type question struct {
	Workload        *kueue.Workload
	LimitRanges     []corev1.LimitRange
	RuntimeClasses  []nodev1.RuntimeClass
	Transformations []config.ResourceTransformation
	Excluded        []string
	Before, Used    corev1.ResourceList
	Elapsed, Half   float64
	Weight          float64
	Weights         map[corev1.ResourceName]float64
}

type answer struct {
	Requests []map[string]int64 `json:"requests"`
	Refusal  string             `json:"refusal"`
	Decayed  map[string]string  `json:"decayed"`
	Usage    float64            `json:"usage"`
}

// objects is a client that finds what a question gives.
type objects struct {
	client.Client
	*question
}

func (o objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Namespace:
		return nil
	case *nodev1.RuntimeClass:
		for _, class := range o.RuntimeClasses {
			if class.Name == key.Name {
				*into = class
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (o objects) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*corev1.LimitRangeList).Items = o.LimitRanges
	return nil
}

func asked(q *question) answer {
	ctx, known := context.Background(), objects{question: q}
	workload.AdjustResources(ctx, known, q.Workload)
	info := workload.NewInfo(
		q.Workload,
		workload.WithResourceTransformations(q.Transformations),
		workload.WithExcludedResourcePrefixes(q.Excluded),
	)
	var a answer
	for _, podSet := range info.TotalRequests {
		requests := map[string]int64{}
		for name, amount := range resources.ToMap(podSet.Requests) {
			requests[string(name)] = amount
		}
		a.Requests = append(a.Requests, requests)
	}
	if err := workload.ValidateAdmissibility(ctx, known, info, labels.Everything()); err != nil {
		a.Refusal = err.Error()
	}
	decayed := fairsharing.CalculateDecayedConsumed(q.Before, q.Used, q.Elapsed, q.Half)
	a.Decayed = map[string]string{}
	for name, amount := range decayed {
		a.Decayed[string(name)] = amount.AsDec().String()
	}
	a.Usage = fairsharing.CalculateUsage(decayed, nil, q.Weight, q.Weights)
	return a
}

func main() {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(make([]byte, 1<<16), 1<<24)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(asked(&q)); err != nil {
			log.Fatal(err)
		}
	}
}
