#!/usr/bin/env bash
# fabric8 7.8.0 (Java) reads durations of Kubernetes wrongly, without an error.
#
# Guess: its class Duration, which stands for metav1.Duration in the models, reads what Go's time.ParseDuration reads.
# Seen: of a number with a fraction only the digits behind the point count, so an hour and a half becomes five hours, and
# a second and a half becomes five seconds. A sign is ignored. "0" is an error. Go writes durations below a second and odd
# fractions with a point: 1500 ms is "1.5s" in each object that an API server returns.
#
# Output seen:
#   1h30m0s   Go: 1h30m0s   fabric8: PT1H30M
#   1.5s      Go: 1.5s      fabric8: PT5S
#   1.5h      Go: 1h30m0s   fabric8: PT5H
#   -1m0s     Go: -1m0s     fabric8: PT1M
#   0         Go: 0s        fabric8: Provided duration string (0) is invalid
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>io.fabric8</groupId><artifactId>kubernetes-model-core</artifactId><version>7.8.0</version></dependency>
</dependencies></project>
XML
cat >Finding.java <<'JAVA'
import io.fabric8.kubernetes.api.model.Duration;

public class Finding {
    public static void main(String[] durations) {
        for (String each : durations) {
            String read;
            try {
                read = Duration.parse(each).getDuration().toString();
            } catch (java.text.ParseException e) {
                read = e.getMessage();
            }
            System.out.println(read);
        }
    }
}
JAVA
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	for _, each := range os.Args[1:] {
		d, err := time.ParseDuration(each)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-9s Go: %-9s fabric8:\n", each, d)
	}
}
GO
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >/dev/null
durations=(1h30m0s 1.5s 1.5h -1m0s 0)
paste -d ' ' <(go run main.go "${durations[@]}") <(java -cp 'lib/*' Finding.java "${durations[@]}") >seen
cat seen
diff <(sed -n 's/^#   //p' "$script") seen && echo "as before"
