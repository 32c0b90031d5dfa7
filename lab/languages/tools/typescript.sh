# What the tools for TypeScript share.
install() {
	mkdir -p "$TOOLS/typescript"
	cmp -s "$HERE/typescript/package.json" "$TOOLS/typescript/package.json" && return
	cp "$HERE/typescript/package.json" "$TOOLS/typescript/new.json"
	(cd "$TOOLS/typescript" && cp new.json package.json && npm install --no-audit --no-fund --loglevel error || { rm package.json && false; })
}

# enter makes a folder of a definition with the compiler and the client of the tool.
enter() {
	mkdir -p "$1" && cd "$1"
	ln -sfn "$TOOLS/typescript/node_modules" node_modules
	cp "$HERE/typescript/tsconfig.json" .
	if [ "$1" = probe ]; then cp "$HERE/typescript/$TOOL.ts" main.ts; fi
}

compile() { cd "$1" && node_modules/.bin/tsc; }

print() { cd probe && node_modules/.bin/esbuild main.ts --bundle --platform=node --log-level=warning | node; }
