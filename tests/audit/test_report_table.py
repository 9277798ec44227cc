"""Tables of the page: which columns and rows are shown."""

from taskgov.audit.report_table import MOST_ROWS, Column, Field, Sheet, amount, text_cell


def test_cells_of_rows_that_the_page_cuts_are_not_made() -> None:
    made: list[int] = []

    def cell(line: int) -> tuple[str, str | float]:
        made.append(line)
        return text_cell(f"line {line}")

    sheet = Sheet("lines", "Lines", "", (Field(Column("Line"), cell),))
    table = sheet.of(range(10 * MOST_ROWS)).on_page()
    assert len(table.rows) == MOST_ROWS
    assert max(made) == MOST_ROWS - 1
    assert "The first 200 of 2,000" in table.note


def test_a_rare_column_is_shown_for_a_row_that_the_page_cuts() -> None:
    last = 2 * MOST_ROWS
    rare: Field[int] = amount("Rare", lambda line: float(line == last), is_rare=True)
    never: Field[int] = amount("Never", lambda _: 0.0, is_rare=True)
    sheet: Sheet[int] = Sheet("lines", "Lines", "", (amount("Line", float), rare, never))
    assert [column.label for column in sheet.of(range(last + 1)).on_page().columns] == ["Line", "Rare"]
