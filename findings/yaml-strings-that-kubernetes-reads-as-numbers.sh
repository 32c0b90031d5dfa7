#!/usr/bin/env bash
# Four writers of YAML leave strings bare that Kubernetes' reader (sigs.k8s.io/yaml v1.6.0) takes for numbers or booleans.
#
# Guess: a writer that knows YAML 1.1 quotes what a reader of YAML 1.1 would take for something else, so the data of a
# ConfigMap, a label or an argument stay strings. js-yaml and PyYAML have such a mode by default.
# Seen: each writer has its own gaps, because the reader follows none of the two versions. A short commit hash such as 12e03
# (PyYAML), a version such as 1_000 (js-yaml), or the octal 0o17 (PyYAML, cdk8s) arrives as a number, and the API server
# refuses the object: "cannot unmarshal number into Go struct field". yaml (npm) writes for YAML 1.2, so "on" is a boolean.
#
# Output seen:
#   js-yaml 4.3.2: 1_000=1000 0xF_F=255 +.5=0.5
#   yaml 2.9.1: on=true y=true 1_000=1000 0b11=3 0xF_F=255 -0x1F=-31
#   cdk8s 2.70.106: 0o17=15
#   PyYAML 6.0.3: y=true 0o17=15 08=8 1e3=1000 12e03=12000 +.5=0.5
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export STRINGS='["on","y","0o17","017","08","1_000","0b11","1e3","12e03","12:30","0xF_F","-0x1F","+.5"]'
npm init -y >/dev/null
npm install --silent js-yaml@4.3.2 yaml@2.9.1 cdk8s@2.70.106 constructs@10.8.1 >/dev/null
python3 -m venv venv
venv/bin/pip install -q PyYAML==6.0.3
cat >write.mjs <<'JAVASCRIPT'
import fs from "fs";
import jsYaml from "js-yaml";
import yaml from "yaml";
import { Yaml } from "cdk8s";

const strings = JSON.parse(process.env.STRINGS);
fs.writeFileSync("js-yaml 4.3.2", jsYaml.dump(strings));
fs.writeFileSync("yaml 2.9.1", yaml.stringify(strings));
fs.writeFileSync("cdk8s 2.70.106", Yaml.stringify(strings));
JAVASCRIPT
node write.mjs
venv/bin/python - <<'PYTHON'
import json, os, yaml

with open("PyYAML 6.0.3", "w") as file:
    yaml.safe_dump(json.loads(os.environ["STRINGS"]), file)
PYTHON
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	var strings []string
	if err := json.Unmarshal([]byte(os.Getenv("STRINGS")), &strings); err != nil {
		panic(err)
	}
	for _, writer := range os.Args[1:] {
		text, err := os.ReadFile(writer)
		if err != nil {
			panic(err)
		}
		var read []any
		if err := yaml.Unmarshal(text, &read); err != nil {
			panic(err)
		}
		fmt.Printf("%s:", writer)
		for i, each := range strings {
			if read[i] != each {
				fmt.Printf(" %s=%v", each, read[i])
			}
		}
		fmt.Println()
	}
}
GO
{ go mod init finding && go get sigs.k8s.io/yaml@v1.6.0; } >/dev/null 2>&1
go run . "js-yaml 4.3.2" "yaml 2.9.1" "cdk8s 2.70.106" "PyYAML 6.0.3" >seen
cat seen
diff <(sed -n 's/^#   //p' "$script") seen && echo "as before"
