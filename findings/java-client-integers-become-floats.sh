#!/usr/bin/env bash
# The official Java client 26.0.0 turns integers in free-form fields into floating-point numbers.
#
# Guess: an object that is read and written without an edit is the same object.
# Seen: fields without a schema (ControllerRevision.data, the default of a CustomResourceDefinition, each custom resource
# that is read as a map) are read by Gson as doubles. 3 is written as 3.0, and integers above 2^53 lose digits. So a
# program that only wants to add a label to a ControllerRevision also writes other data, which may not change.
#
# Output seen:
#   {"replicas":3.0,"id":9.007199254740992E15}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/pom.xml" <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>io.kubernetes</groupId><artifactId>client-java</artifactId><version>26.0.0</version></dependency>
</dependencies></project>
XML
cat >"$folder/Finding.java" <<'JAVA'
import io.kubernetes.client.openapi.JSON;
import io.kubernetes.client.openapi.models.V1ControllerRevision;

public class Finding {
    public static void main(String[] args) {
        new JSON();
        V1ControllerRevision read = JSON.deserialize(
            "{\"metadata\":{\"name\":\"a\"},\"revision\":1,\"data\":{\"replicas\":3,\"id\":9007199254740993}}", V1ControllerRevision.class);
        System.out.println(JSON.serialize(read).replaceAll(".*\"data\":(\\{[^}]*\\}).*", "$1"));
    }
}
JAVA
mvn -q -B -f "$folder/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib" >/dev/null
java -cp "$folder/lib/*" "$folder/Finding.java" 2>/dev/null >"$folder/seen"
cat "$folder/seen"
diff <(sed -n 's/^#   //p' "$0") "$folder/seen" && echo "as before"
