# cdk8s makes TypeScript classes that write manifests.
source "$HERE/tools/typescript.sh"

generate() {
	enter "$1"
	CI=1 node_modules/.bin/cdk8s import "$IN/$1.yaml" --language typescript --output generated
}
