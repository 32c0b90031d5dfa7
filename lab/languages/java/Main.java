import dev.yare.languages.v1.Probe;
import dev.yare.languages.v1.ProbeSpec;
import dev.yare.languages.v1.probespec.Items;
import io.fabric8.kubernetes.api.model.AnyType;
import io.fabric8.kubernetes.api.model.IntOrString;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.List;
import java.util.Map;

/** Prints a Probe by the classes of java-generator. */
class Main {
  public static void main(String[] args) {
    var item = new Items();
    item.setName("a");
    item.setSize(2);
    var spec = new ProbeSpec();
    spec.setText("hello");
    spec.setBig(9007199254740991L);
    spec.setPort(new IntOrString(8080));
    spec.setMemory(new IntOrString("1Gi"));
    spec.setMode(ProbeSpec.Mode.FAST);
    spec.setItems(List.of(item));
    spec.setSettings(Map.of("depth", new AnyType(1)));
    var probe = new Probe();
    probe.setMetadata(new ObjectMetaBuilder().withName("java-generator").build());
    probe.setSpec(spec);
    System.out.println(Serialization.asJson(probe));
  }
}
