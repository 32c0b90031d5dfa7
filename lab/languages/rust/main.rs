
// Prints a Probe by the types of kopium.
fn main() {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    let probe = Probe::new("kopium", ProbeSpec {
        text: "hello".into(),
        big: Some(9007199254740991),
        port: Some(IntOrString::Int(8080)),
        memory: Some(IntOrString::String("1Gi".into())),
        mode: Some(ProbeMode::Fast),
        items: Some(vec![ProbeItems { name: "a".into(), size: Some(2) }]),
        settings: Some([("depth".to_string(), serde_json::json!(1))].into()),
        ..Default::default()
    });
    println!("{}", serde_json::to_string(&probe).unwrap());
}
