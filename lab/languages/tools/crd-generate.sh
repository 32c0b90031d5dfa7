# crd-generate makes TypeScript classes that check what they hold.
source "$HERE/tools/typescript.sh"

generate() {
	enter "$1"
	node_modules/.bin/crd-generate --input "$IN/$1.yaml" --output generated
}
