# java-generator makes Java classes for the client of fabric8.
install() { :; } # Maven installs what a build needs

generate() { maven generate-sources "$1"; }

compile() { maven compile "$1"; }

print() {
	maven dependency:build-classpath probe -Dmdep.outputFile=classpath >&2
	java -cp "probe/target/classes:$(cat probe/classpath)" Main
}

maven() {
	mkdir -p "$2"
	cp "$HERE/java/pom.xml" "$2"
	if [ "$2" = probe ]; then mkdir -p probe/src/main/java && cp "$HERE/java/Main.java" probe/src/main/java; fi
	(cd "$2" && mvn --quiet --batch-mode "$1" -Ddefinition="$IN/$2.yaml" "${@:3}")
}
