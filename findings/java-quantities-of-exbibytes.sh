#!/usr/bin/env bash
# Both Java clients fail at the last binary suffix of a quantity, Ei.
#
# Guess: a suffix of the grammar of quantities that a parser accepts has an exact value, and can be written again.
# Seen: fabric8 7.8.0 computes Ei in floating point: 1Ei is 24 bytes too large, and does not equal the same number of bytes.
# Pi is exact. The official client 26.0.0 reads Ei, and cannot write it: its table of suffixes ends at Pi.
#
# Output seen:
#   fabric8: 1Pi is 1125899906842624, 1Ei is 1152921504606847000
#   fabric8: 1Ei equals 1152921504606846976: false
#   official: 1Pi is written as 1Pi
#   official: 1Ei is written as: No suffix for exponent3
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
<dependency><groupId>io.kubernetes</groupId><artifactId>client-java-api</artifactId><version>26.0.0</version></dependency>
</dependencies></project>
XML
cat >Finding.java <<'JAVA'
import io.fabric8.kubernetes.api.model.Quantity;

public class Finding {
    static String bytes(String text) {
        return Quantity.getAmountInBytes(Quantity.parse(text)).toPlainString();
    }

    static void write(String text) {
        String written;
        try {
            written = " " + io.kubernetes.client.custom.Quantity.fromString(text).toSuffixedString();
        } catch (IllegalArgumentException e) {
            written = ": " + e.getMessage();
        }
        System.out.println("official: " + text + " is written as" + written);
    }

    public static void main(String[] args) {
        System.out.println("fabric8: 1Pi is " + bytes("1Pi") + ", 1Ei is " + bytes("1Ei"));
        boolean isEqual = new Quantity("1Ei").equals(new Quantity("1152921504606846976"));
        System.out.println("fabric8: 1Ei equals 1152921504606846976: " + isEqual);
        write("1Pi");
        write("1Ei");
    }
}
JAVA
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >/dev/null
java -cp 'lib/*' Finding.java >seen 2>/dev/null
cat seen
diff <(sed -n 's/^#   //p' "$script") seen && echo "as before"
