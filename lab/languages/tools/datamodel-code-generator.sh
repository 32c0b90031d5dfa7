# datamodel-code-generator makes Python classes for pydantic.
install() {
	[ -x "$TOOLS/python/bin/python" ] || python3 -m venv "$TOOLS/python"
	"$TOOLS/python/bin/pip" install --quiet --disable-pip-version-check -r "$HERE/python/requirements.txt"
}

generate() {
	"$TOOLS/python/bin/datamodel-codegen" --input "$IN/$1.schema.json" --input-file-type jsonschema \
		--output-model-type pydantic_v2.BaseModel --class-name Root --formatters builtin --output "$1.py"
}

compile() { "$TOOLS/python/bin/python" -c "import $1"; }

print() { PYTHONPATH=. "$TOOLS/python/bin/python" "$HERE/python/main.py"; }
