# openapi-typescript makes TypeScript types of the document that an API server publishes.
source "$HERE/tools/typescript.sh"

generate() {
	enter "$1"
	node_modules/.bin/openapi-typescript "$IN/$1.openapi.json" --output generated.ts
}
