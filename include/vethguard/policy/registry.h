/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry: reads what a request to a container registry (the HTTP API of the OCI distribution specification) or to
 * its token service (the token requests of the CNCF distribution project) asks for, and compares that with what a
 * credential with inject: docker-registry allows. Pure.
 */
#ifndef VETHGUARD_POLICY_REGISTRY_H
#define VETHGUARD_POLICY_REGISTRY_H

#include "vethguard/policy/policy.h"

#define POLICY_REPOSITORY_MAX 255    /* bytes of a repository's name, or of a pattern of names */
#define POLICY_REPOSITORIES_MAX 64   /* patterns of one credential */
#define POLICY_SCOPES_MAX 16         /* scopes that one request for a token may name */
#define POLICY_PARAMETERS_MAX 32     /* parameters of one request for a token */
#define POLICY_REALM_MAX 512         /* bytes of the token service's URL */
#define POLICY_TOKEN_SERVICE_MAX 128 /* bytes of the name in service= */

/* What a credential with inject: docker-registry allows. */
struct policy_registry {
	struct slice realm;        /* the token service: https://HOST[:PORT]/PATH, the path canonical, no query */
	struct slice service;      /* the registry's name at the token service */
	struct slice actions;      /* of pull, push, delete, with a space between */
	struct slice repositories; /* patterns as in paths, with a space between */
};
void policy_registry(const struct policy_credential *credential, struct policy_registry *out);

/* True for a name of 1 to POLICY_REPOSITORY_MAX bytes: parts with single slashes between them, each of lower-case
 * letters and digits, with '.', '_' and '-' between these. With is_pattern, '*' counts as a letter. */
bool policy_is_repository(struct slice name, bool is_pattern);
/* True if both URLs mean the same token service. */
bool policy_is_realm(const struct policy_registry *registry, struct slice url);
/* True if the request goes to the token service, and not to the registry. */
bool policy_registry_gives_token(const struct policy_registry *registry, const struct policy_request *request);
/* Compares what a request asks for with what the credential allows. Returns NULL if the request may have the
 * credential, else why not: one static sentence. */
const char *policy_registry_check(const struct policy_registry *registry, const struct policy_request *request);

#endif
