# kopium makes Rust types for the client kube.
install() {
	[ -x "$TOOLS/kopium-0.24.1/bin/kopium" ] || cargo install --quiet kopium --version 0.24.1 --locked --root "$TOOLS/kopium-0.24.1"
}

generate() {
	mkdir -p src/bin
	cp "$HERE/rust/Cargo.toml" .
	echo >src/lib.rs
	"$TOOLS/kopium-0.24.1/bin/kopium" -f "$IN/$1.yaml" --docs --derive Default --derive PartialEq >"src/bin/$1.rs"
	if [ "$1" = probe ]; then cat "$HERE/rust/main.rs"; else echo 'fn main() {}'; fi >>"src/bin/$1.rs"
}

compile() { CARGO_TARGET_DIR="$TOOLS/rust" cargo check --quiet --bin "$1"; }

print() { CARGO_TARGET_DIR="$TOOLS/rust" cargo run --quiet --bin probe; }
