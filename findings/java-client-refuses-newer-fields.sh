#!/usr/bin/env bash
# The official Java client 26.0.0 cannot read an object that has one field which its model lacks.
#
# Guess: a client ignores fields that a newer API server has added, as the API conventions of Kubernetes ask of clients, and
# as client-go, fabric8 and the Python client do.
# Seen: each generated model checks the names of all members and throws. One Pod that uses a field of a newer minor
# makes the read of the whole list fail, and an informer never syncs.
#
# Output seen:
#   fabric8 7.8.0: web
#   official 26.0.0: The field `schedulingGroup` in the JSON string is not defined in the `V1PodSpec` properties.
#   official 26.0.0, a list: The field `schedulingGroup` in the JSON string is not defined in the `V1PodSpec` properties.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/pom.xml" <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>io.kubernetes</groupId><artifactId>client-java</artifactId><version>26.0.0</version></dependency>
<dependency><groupId>io.fabric8</groupId><artifactId>kubernetes-client</artifactId><version>7.8.0</version></dependency>
</dependencies></project>
XML
cat >"$folder/Finding.java" <<'JAVA'
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.utils.KubernetesSerialization;
import io.kubernetes.client.openapi.JSON;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodList;

public class Finding {
    static String read(String text, Class<?> type) {
        new JSON();
        try {
            return String.valueOf(JSON.deserialize(text, type));
        } catch (RuntimeException e) {
            return e.getMessage().replaceAll(" JSON: .*", "");
        }
    }

    public static void main(String[] args) {
        String pod = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\"},\"spec\":{"
            + "\"containers\":[{\"name\":\"web\"}],\"schedulingGroup\":{\"podGroupName\":\"web\"}}}";
        System.out.println("fabric8 7.8.0: " + new KubernetesSerialization().unmarshal(pod, Pod.class).getMetadata().getName());
        System.out.println("official 26.0.0: " + read(pod, V1Pod.class));
        System.out.println("official 26.0.0, a list: " + read("{\"items\":[" + pod + "]}", V1PodList.class));
    }
}
JAVA
mvn -q -B -f "$folder/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib" >/dev/null
java -cp "$folder/lib/*" "$folder/Finding.java" 2>/dev/null >"$folder/seen"
cat "$folder/seen"
diff <(sed -n 's/^#   //p' "$0") "$folder/seen" && echo "as before"
