//! The custom resource of the comparison.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of a Shop.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "Shop",
    namespaced,
    status = "ShopStatus"
)]
pub struct ShopSpec {
    pub image: String,
    pub replicas: i32,
    pub host: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

/// One variable of the environment.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

/// The observed state of a Shop.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShopStatus {
    pub available_replicas: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
