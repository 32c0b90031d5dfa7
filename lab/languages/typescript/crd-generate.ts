// Prints a Probe by the classes of crd-generate, which check it first.
import { Probe } from "./generated/languages.yare.dev/v1/Probe";

const probe = new Probe({
  metadata: { name: "crd-generate" },
  spec: {
    text: "hello",
    big: 9007199254740991,
    port: 8080,
    memory: "1Gi",
    mode: "Fast",
    items: [{ name: "a", size: 2 }],
    settings: { depth: 1 },
  },
});
probe.validate();
console.log(JSON.stringify(probe));
