/* SPDX-License-Identifier: Apache-2.0 */
/* A call to AWS with a signature of Version 4: everything is a POST of "/", without a query. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fetch/services/aws.h"

#define CANONICAL_MAX 32768
#define AUTHORITY_MAX (FETCH_HOST_MAX + 16)
#define FIELD_MAX (AWS_TOKEN_MAX + 256)
#define SIGNED_MAX 5
#define SENT_MAX 8

static struct hmac hmac;

/* The fields of a call: those that are signed, and the lines that are sent. */
struct head {
	struct sigv4_field fields[SIGNED_MAX];
	size_t field_count;
	char authority[AUTHORITY_MAX];
	struct sigv4_scope scope;
	char payload[SIGV4_HEX + 1];
};

int aws_prepare(void)
{
	return hmac_init(&hmac);
}

static void add(struct head *head, const char *name, struct slice value)
{
	if (value.n)
		head->fields[head->field_count++] =
		        (struct sigv4_field){slice_from_string(name), value};
}

/* The field Host, as libcurl would write it. */
static bool name_host(struct slice url, char out[AUTHORITY_MAX])
{
	struct fetch_site site;
	const bool v6 = fetch_site_read(url, &site) && strchr(site.host, ':');

	if (!fetch_site_read(url, &site))
		return false;
	snprintf(out, AUTHORITY_MAX, v6 ? "[%s]" : "%s", site.host);
	if (site.port != 443)
		snprintf(out + strlen(out), 8, ":%u", site.port);
	return true;
}

/* Appends "Authorization: ...", with a NUL. */
static int sign(const struct head *head, struct aws_keys *keys, struct buf *out)
{
	const struct sigv4_request request = {.method = SLICE("POST"),
	        .path = SLICE("/"),
	        .query = SLICE(""),
	        .fields = head->fields,
	        .field_count = head->field_count,
	        .payload = slice_from_string(head->payload)};
	const uint8_t *key = aws_keys_for(keys, &hmac, &head->scope);
	char signature[SIGV4_HEX + 1];
	struct buf canonical, names;
	int rc = key ? 0 : -1;

	private_buf_init(&canonical, CANONICAL_MAX);
	buf_init(&names, CANONICAL_MAX);
	if (rc == 0)
		rc = sigv4_canonical(&canonical, &request);
	if (rc == 0)
		rc = sigv4_names(&names, head->fields, head->field_count);
	if (rc == 0)
		rc = sigv4_sign(&hmac, key, &head->scope, buf_slice(&canonical), signature);
	if (rc == 0)
		rc = buf_append_slice(out, SLICE("Authorization: "));
	if (rc == 0)
		rc = sigv4_write_authorization(
		        out, keys->id, &head->scope, buf_slice(&names), signature);
	if (rc == 0)
		rc = buf_append(out, "", 1);
	private_buf_fini(&canonical);
	buf_fini(&names);
	return rc;
}

static bool prepare(const struct fetch_request *request, struct aws_keys *keys,
        const struct aws_call *call, struct head *head, struct buf *authorization)
{
	if (!name_host(call->url, head->authority))
		return false;
	if (!keys)
		return true;
	sigv4_time((int64_t)time(NULL), head->scope.time);
	head->scope.region = fetch_argument(request, "region");
	head->scope.service = call->service;
	add(head, "content-type", slice_from_string(call->type));
	add(head, "host", slice_from_string(head->authority));
	add(head, "x-amz-date", slice_from_string(head->scope.time));
	add(head, "x-amz-security-token", keys->token);
	if (call->target)
		add(head, "x-amz-target", slice_from_string(call->target));
	return sigv4_is_region(head->scope.region) &&
	       sigv4_payload_hex(&hmac, call->body, head->payload) == 0 &&
	       sign(head, keys, authorization) == 0;
}

bool aws_post(const struct fetch_request *request, struct https *https, struct aws_keys *keys,
        const struct aws_call *call, struct slice *answer, char fault[HTTPS_TEXT_MAX])
{
	static char lines[SIGNED_MAX][FIELD_MAX];
	struct head head = {.field_count = 0};
	const char *fields[SENT_MAX] = {NULL};
	char type[256], url[HTTPS_URL_MAX];
	struct buf authorization;
	bool done = false;
	size_t n = 0;

	private_buf_init(&authorization, HTTPS_URL_MAX);
	snprintf(fault, HTTPS_TEXT_MAX, "the request to it cannot be signed");
	if (prepare(request, keys, call, &head, &authorization) &&
	        fetch_url_at(call->url, "/", url, sizeof(url))) {
		snprintf(type, sizeof(type), "Content-Type: %s", call->type);
		for (size_t i = 0; i < head.field_count; i++, n++) {
			snprintf(lines[n], sizeof(lines[n]), "%.*s: %.*s",
			        SLICE_ARG(head.fields[i].name), SLICE_ARG(head.fields[i].value));
			fields[n] = lines[n];
		}
		fields[n++] = keys ? (const char *)buf_bytes(&authorization) : type;
		done = https_text(https,
		        &(struct https_call){
		                .method = "POST", .url = url, .fields = fields, .body = call->body},
		        answer, fault);
	}
	secret_wipe(lines, sizeof(lines));
	private_buf_fini(&authorization);
	return done;
}
