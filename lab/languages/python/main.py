"""Prints a Probe by the classes of probe.py."""
from probe import Root

probe = Root.model_validate({
    "apiVersion": "languages.yare.dev/v1",
    "kind": "Probe",
    "metadata": {"name": "datamodel-code-generator"},
    "spec": {
        "text": "hello",
        "big": 9007199254740991,
        "port": 8080,
        "memory": "1Gi",
        "mode": "Fast",
        "items": [{"name": "a", "size": 2}],
        "settings": {"depth": 1},
    },
})
print(probe.model_dump_json(by_alias=True, exclude_unset=True))
