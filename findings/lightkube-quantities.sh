#!/usr/bin/env bash
# lightkube 1.0.1 (Python) refuses quantities that Kubernetes accepts and writes.
#
# Guess: a parser of quantities reads each quantity of Kubernetes. Its grammar has the suffixes n, u, m, k, M, G, T, P, E,
# Ki to Ei, and a decimal exponent that begins with e or E.
# Seen: lightkube.utils.quantity.parse_quantity knows neither n nor u, and no exponent with a capital E. The metrics API
# states processor time in n ("156340n"), so the usage of a node or a Pod cannot be read. The parser of the official
# client (kubernetes 37.0.2) reads all of them.
#
# Output seen:
#   156340n   lightkube: Invalid unit suffix: n    kubernetes: 0.000156340
#   250u      lightkube: Invalid unit suffix: u    kubernetes: 0.000250
#   12E3      lightkube: Invalid unit suffix: E3   kubernetes: 1.2E+4
#   12e3      lightkube: 12000.000                 kubernetes: 1.2E+4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q lightkube==1.0.1 kubernetes==37.0.2
"$folder/venv/bin/python" - >"$folder/seen" <<'PYTHON'
import kubernetes.utils
import lightkube.utils.quantity

def result(parse, text):
    try:
        return str(parse(text))
    except ValueError as err:
        return str(err)

for text in ["156340n", "250u", "12E3", "12e3"]:
    ours = result(lightkube.utils.quantity.parse_quantity, text)
    print(f"{text:9} lightkube: {ours:25} kubernetes: {result(kubernetes.utils.parse_quantity, text)}")
PYTHON
cat "$folder/seen"
diff <(sed -n 's/^#   //p' "$0") "$folder/seen" && echo "as before"
