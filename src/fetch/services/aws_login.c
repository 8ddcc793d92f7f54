/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that AWS is called with; STS hands out those of a role. */
#include <stdio.h>

#include "fetch/services/aws.h"
#include "fetch/form.h"

#define ROLE_LIFE "3600" /* seconds; the most that every role permits */

static int add_role(const struct fetch_request *request, const char *action, struct buf *form)
{
	struct slice session = fetch_argument(request, "session_name");
	int rc = form_add(form, "Action", slice_from_string(action));

	if (!session.n)
		session = SLICE("vethguard");
	if (rc == 0)
		rc = form_add(form, "Version", SLICE("2011-06-15"));
	if (rc == 0)
		rc = form_add(form, "RoleArn", fetch_argument(request, "role"));
	if (rc == 0)
		rc = form_add(form, "RoleSessionName", session);
	return rc == 0 ? form_add(form, "DurationSeconds", SLICE(ROLE_LIFE)) : rc;
}

/* Takes the keys of an answer of STS. */
static struct aws_keys *read_keys(
        struct slice xml, struct fetched *lives, char fault[HTTPS_TEXT_MAX])
{
	struct slice id, secret, token, ends;
	struct aws_keys *keys = NULL;
	const char *error = "its answer has no AccessKeyId, SecretAccessKey and SessionToken";
	char when[64];
	struct buf value;

	private_buf_init(&value, AWS_VALUE_MAX);
	if (https_xml_element(xml, "AccessKeyId", &id) &&
	        https_xml_element(xml, "SecretAccessKey", &secret) &&
	        https_xml_element(xml, "SessionToken", &token) &&
	        buf_printf(&value, "%.*s:%.*s:%.*s", SLICE_ARG(id), SLICE_ARG(secret),
	                SLICE_ARG(token)) == 0)
		keys = aws_keys_new(buf_slice(&value), &error);
	if (https_xml_element(xml, "Expiration", &ends)) {
		snprintf(when, sizeof(when), "%.*s", SLICE_ARG(ends));
		fetched_ends(lives, when);
	}
	private_buf_fini(&value);
	if (!keys)
		snprintf(fault, HTTPS_TEXT_MAX, "%s", error);
	return keys;
}

/* own: the keys that may assume the role, or NULL: the token of the web identity may. */
static struct aws_keys *assume(const struct fetch_request *request, struct https *https,
        struct aws_keys *own, struct fetched *lives, char fault[HTTPS_TEXT_MAX])
{
	struct aws_call call = {.url = fetch_argument(request, "sts_url"),
	        .service = SLICE("sts"),
	        .type = "application/x-www-form-urlencoded"};
	struct aws_keys *keys = NULL;
	struct slice answer;
	struct buf form;
	int rc;

	private_buf_init(&form, FORM_MAX);
	rc = add_role(request, own ? "AssumeRole" : "AssumeRoleWithWebIdentity", &form);
	if (rc == 0 && own)
		rc = form_add(&form, "ExternalId", fetch_argument(request, "external_id"));
	else if (rc == 0)
		rc = form_add(
		        &form, "WebIdentityToken", fetch_secret(request, "web_identity_token"));
	call.body = buf_slice(&form);
	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (rc == 0 && aws_post(request, https, own, &call, &answer, fault))
		keys = read_keys(answer, lives, fault);
	private_buf_fini(&form);
	if (!keys)
		fetched_blame("STS", fault);
	return keys;
}

/* The keys of the file, or of this machine. */
static struct aws_keys *own_keys(const struct fetch_request *request, struct https *https,
        struct fetched *lives, char fault[HTTPS_TEXT_MAX])
{
	const struct slice value = fetch_secret(request, "keys");
	struct aws_keys *keys;
	const char *error;

	if (!value.n)
		return aws_instance_keys(request, https, lives, fault);
	keys = aws_keys_new(value, &error);
	if (!keys)
		snprintf(fault, HTTPS_TEXT_MAX, "the file with the keys: %s", error);
	return keys;
}

struct aws_keys *aws_log_in(const struct fetch_request *request, struct https *https,
        struct fetched *lives, char fault[HTTPS_TEXT_MAX])
{
	const bool assumes = fetch_argument(request, "role").n > 0;
	struct aws_keys *own = NULL, *keys;

	if (!fetch_secret(request, "web_identity_token").n) {
		own = own_keys(request, https, lives, fault);
		if (!own || !assumes)
			return own;
	}
	keys = assume(request, https, own, lives, fault);
	aws_keys_free(own);
	return keys;
}
