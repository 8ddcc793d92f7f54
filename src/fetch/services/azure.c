/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Azure Key Vault: one secret. The login is by the client's secret, by a token of another identity
 * provider that Azure trusts (workload identity, RFC 7523), or as the identity of this machine,
 * whose metadata gives a token.
 */
#include <stdio.h>
#include <string.h>

#include "fetch/services/bearer.h"
#include "fetch/form.h"
#include "fetch/services/services.h"

#define API_VERSION "7.4"
#define METADATA_VERSION "2018-02-01"

static int add_proof(const struct fetch_request *request, struct buf *form)
{
	const struct slice federated = fetch_secret(request, "federated_token");
	int rc;

	if (!federated.n)
		return form_add(form, "client_secret", fetch_secret(request, "client_secret"));
	rc = form_add(form, "client_assertion_type",
	        SLICE("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
	return rc == 0 ? form_add(form, "client_assertion", federated) : rc;
}

/* Returns the answer of the tenant's token endpoint. */
static json_t *log_in(
        const struct fetch_request *request, struct https *https, char fault[HTTPS_TEXT_MAX])
{
	const struct slice tenant = fetch_argument(request, "tenant_id");
	const struct slice resource = fetch_argument(request, "resource");
	char scope[HTTPS_URL_MAX], path[HTTPS_URL_MAX], url[HTTPS_URL_MAX];
	json_t *answer = NULL;
	struct buf form;

	private_buf_init(&form, FORM_MAX);
	snprintf(scope, sizeof(scope), "%.*s/.default", SLICE_ARG(resource));
	snprintf(path, sizeof(path), "/%.*s/oauth2/v2.0/token", SLICE_ARG(tenant));
	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (form_add(&form, "grant_type", SLICE("client_credentials")) == 0 &&
	        form_add(&form, "client_id", fetch_argument(request, "client_id")) == 0 &&
	        form_add(&form, "scope", slice_from_string(scope)) == 0 &&
	        add_proof(request, &form) == 0 &&
	        fetch_url_at(fetch_argument(request, "login_url"), path, url, sizeof(url)))
		answer = form_post_to(https, slice_from_string(url), buf_slice(&form), NULL, fault);
	private_buf_fini(&form);
	if (!answer)
		fetched_blame("the login", fault);
	return answer;
}

static json_t *ask_the_machine(
        const struct fetch_request *request, struct https *https, char fault[HTTPS_TEXT_MAX])
{
	static const char *const fields[] = {"Metadata: true", NULL};
	char url[HTTPS_URL_MAX];
	json_t *answer = NULL;
	struct buf path;

	private_buf_init(&path, HTTPS_URL_MAX);
	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (buf_append_slice(
	            &path, SLICE("/metadata/identity/oauth2/token?api-version=" METADATA_VERSION
	                         "&resource=")) == 0 &&
	        form_encode(&path, fetch_argument(request, "resource")) == 0 &&
	        (!fetch_argument(request, "client_id").n ||
	                form_add(&path, "client_id", fetch_argument(request, "client_id")) == 0) &&
	        buf_append(&path, "", 1) == 0 &&
	        fetch_url_at(fetch_argument(request, "metadata_url"),
	                (const char *)buf_bytes(&path), url, sizeof(url)))
		answer = https_json(https,
		        &(struct https_call){.method = "GET", .url = url, .fields = fields}, fault);
	private_buf_fini(&path);
	if (!answer)
		fetched_blame("the machine's metadata", fault);
	return answer;
}

static json_t *read_secret(const struct fetch_request *request, struct https *https,
        const char *token, char fault[HTTPS_TEXT_MAX])
{
	const struct slice secret = fetch_argument(request, "secret");
	const struct slice version = fetch_argument(request, "version");
	char path[HTTPS_URL_MAX];

	snprintf(path, sizeof(path), "/secrets/%.*s%s%.*s?api-version=" API_VERSION,
	        SLICE_ARG(secret), version.n ? "/" : "", SLICE_ARG(version));
	return bearer_get(request, https, slice_from_string(token), path, fault);
}

static bool take_value(const struct fetch_request *request, const json_t *answer,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const json_t *value = json_object_get(answer, "value");

	if (json_is_string(value))
		return fetched_take_secret(request,
		        slice_of(json_string_value(value), json_string_length(value)), out, fault);
	snprintf(fault, HTTPS_TEXT_MAX, "its answer has no string value");
	return false;
}

bool azure_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	json_t *login = fetch_argument(request, "tenant_id").n
	                        ? log_in(request, https, fault)
	                        : ask_the_machine(request, https, fault);
	const char *token = json_string_value(json_object_get(login, "access_token"));
	json_t *answer = token ? read_secret(request, https, token, fault) : NULL;
	bool taken = answer && take_value(request, answer, out, fault);

	if (login && !token)
		snprintf(fault, HTTPS_TEXT_MAX, "the login: its answer has no string access_token");
	json_decref(answer);
	json_decref(login);
	return taken;
}
