"""The table that all races print: what was asked, whit, its peer, their ratio, and whether that is what is required."""


def digits(ratio):
    """Three digits that count."""
    if ratio is None:
        return ""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:#.3g}"


class Report:
    """Rows of: question, whit, peer, ratio, what is asked for, whether it is met."""

    def __init__(self):
        self.rows = []

    def add(self, question, whit, peer="", ratio=None, required="", met=None):
        self.rows.append(
            {"question": question, "whit": whit, "peer": peer, "ratio": ratio, "required": required, "met": met}
        )

    def write(self, out):
        verdict = {True: "yes", False: "NO", None: ""}
        cells = [["question", "whit", "peer", "ratio", "required", "met"]]
        for row in self.rows:
            words = row["question"], row["whit"], row["peer"], digits(row["ratio"]), row["required"]
            cells.append([*words, verdict[row["met"]]])
        widths = [max(map(len, column)) for column in zip(*cells)]
        cells.insert(1, ["─" * width for width in widths])
        for row in cells:
            line = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
            print("  ".join(line).rstrip(), file=out)
