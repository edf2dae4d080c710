// Package wire has the bodies of the HTTP API: what requests bring and answers carry,
// as JSON spells it. The OpenAPI document is made of these types: their names are the
// names of its schemas, their tags what it says of each member. docs/http-api.md tells
// what a client can rely on; members are added, and none is ever changed.
package wire
