# cue makes definitions of CUE, which check and print objects.
install() { [ -x "$TOOLS/cue-0.17.1/cue" ] || GOBIN="$TOOLS/cue-0.17.1" go install cuelang.org/go/cmd/cue@v0.17.1; }

generate() {
	mkdir -p "$1" && cd "$1"
	[ -e cue.mod ] || "$TOOLS/cue-0.17.1/cue" mod init languages.yare.dev@v0
	"$TOOLS/cue-0.17.1/cue" get crd "$IN/$1.yaml"
	if [ "$1" = probe ]; then cp "$HERE/cue/main.cue" .; fi
}

compile() { cd "$1" && "$TOOLS/cue-0.17.1/cue" vet -c=false ./...; }

print() { cd probe && "$TOOLS/cue-0.17.1/cue" export main.cue --expression probe; }
