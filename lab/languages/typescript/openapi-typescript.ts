// Prints a Probe of the types of openapi-typescript. They require the fields that have a default.
import type { components } from "./generated";

const probe: components["schemas"]["dev.yare.languages.v1.Probe"] = {
  apiVersion: "languages.yare.dev/v1",
  kind: "Probe",
  metadata: { name: "openapi-typescript" },
  spec: {
    text: "hello",
    big: 9007199254740991,
    count: 3,
    paused: false,
    port: 8080,
    memory: "1Gi",
    mode: "Fast",
    items: [{ name: "a", size: 2 }],
    settings: { depth: 1 },
  },
};
console.log(JSON.stringify(probe));
