// Prints a Probe by the classes of cdk8s.
import { App, Chart } from "cdk8s";
import { Probe, ProbeSpecMemory, ProbeSpecMode, ProbeSpecPort } from "./generated/languages.yare.dev";

const probe = new Probe(new Chart(new App(), "chart"), "probe", {
  metadata: { name: "cdk8s" },
  spec: {
    text: "hello",
    big: 9007199254740991,
    port: ProbeSpecPort.fromNumber(8080),
    memory: ProbeSpecMemory.fromString("1Gi"),
    mode: ProbeSpecMode.FAST,
    items: [{ name: "a", size: 2 }],
    settings: { depth: 1 },
  },
});
console.log(JSON.stringify(probe.toJson()));
