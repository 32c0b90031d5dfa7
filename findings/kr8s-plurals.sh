#!/usr/bin/env bash
# kr8s 0.20.15 (Python) forms the plural of a kind by one letter: it adds an s to every name.
#
# Guess: a class for a kind without an explicit plural asks discovery, or follows the rules that the tools of Kubernetes
# follow (kubectl and controller-gen make policies, ingresses and meshes).
# Seen: new_class("Policy") reads /apis/example.com/v1/.../policys, which no server has. The argument plural= helps.
#
# Output seen:
#   Policy    policys
#   Ingress   ingresss
#   Mesh      meshs
#   Endpoints endpointss
#   Widget    widgets
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q kr8s==0.20.15
"$folder/venv/bin/python" - >"$folder/seen" <<'PYTHON'
from kr8s.objects import new_class

for kind in ["Policy", "Ingress", "Mesh", "Endpoints", "Widget"]:
    print(f"{kind:9} {new_class(kind, 'example.com/v1', asyncio=False).endpoint}")
PYTHON
cat "$folder/seen"
diff <(sed -n 's/^#   //p' "$0") "$folder/seen" && echo "as before"
