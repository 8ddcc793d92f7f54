/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the role of an EC2 instance, by its metadata (IMDSv2): a session token by PUT, then
 * the role's name, then its keys. Version 1, which needs no token, is not used: nobody can know
 * whether an answer without it comes from the service.
 */
#include <stdio.h>
#include <string.h>

#include "fetch/services/aws.h"

#define TOKEN_MAX 1024
#define ROLE_MAX 64 /* IAM's bound */
#define KEYS_PATH "/latest/meta-data/iam/security-credentials/"

static bool is_role(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		const char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            (c && strchr("+=,.@_-", c))))
			return false;
	}
	return name.n > 0 && name.n <= ROLE_MAX;
}

/* The answer without the line end that may follow it. */
static struct slice one_line(struct slice text)
{
	while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	return text;
}

/* Asks for /path. Returns true with the answer. */
static bool ask(const struct fetch_request *request, struct https *https, const char *method,
        const char *path, const char *field, struct slice *answer, char fault[HTTPS_TEXT_MAX])
{
	const char *const fields[] = {field, NULL};
	char url[HTTPS_URL_MAX];

	snprintf(fault, HTTPS_TEXT_MAX, "the URL is too long");
	return fetch_url_at(fetch_argument(request, "metadata_url"), path, url, sizeof(url)) &&
	       https_text(https,
	               &(struct https_call){.method = method, .url = url, .fields = fields}, answer,
	               fault);
}

/* Writes the path of the keys of the role that the answer names. */
static bool name_keys(struct slice role, char out[HTTPS_TEXT_MAX], char fault[HTTPS_TEXT_MAX])
{
	role = one_line(role);
	if (is_role(role)) {
		snprintf(out, HTTPS_TEXT_MAX, KEYS_PATH "%.*s", SLICE_ARG(role));
		return true;
	}
	snprintf(fault, HTTPS_TEXT_MAX,
	        "the name that it gives for this machine's role is not a role's name");
	return false;
}

static struct aws_keys *read_keys(
        struct slice text, struct fetched *lives, char fault[HTTPS_TEXT_MAX])
{
	json_t *answer = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
	struct aws_keys *keys = NULL;
	const char *error = "what it answered is not JSON";

	if (answer)
		keys = aws_keys_new(one_line(text), &error);
	fetched_ends(lives, json_string_value(json_object_get(answer, "Expiration")));
	json_decref(answer);
	if (!keys)
		snprintf(fault, HTTPS_TEXT_MAX, "%s", error);
	return keys;
}

struct aws_keys *aws_instance_keys(const struct fetch_request *request, struct https *https,
        struct fetched *lives, char fault[HTTPS_TEXT_MAX])
{
	char field[TOKEN_MAX + 64], path[HTTPS_TEXT_MAX];
	struct aws_keys *keys = NULL;
	struct slice answer;

	if (ask(request, https, "PUT", "/latest/api/token",
	            "X-aws-ec2-metadata-token-ttl-seconds: 60", &answer, fault)) {
		answer = one_line(answer);
		snprintf(field, sizeof(field), "X-aws-ec2-metadata-token: %.*s",
		        answer.n < TOKEN_MAX ? (int)answer.n : TOKEN_MAX, answer.p);
		if (ask(request, https, "GET", KEYS_PATH, field, &answer, fault) &&
		        name_keys(answer, path, fault) &&
		        ask(request, https, "GET", path, field, &answer, fault))
			keys = read_keys(answer, lives, fault);
		secret_wipe(field, sizeof(field));
	}
	if (!keys)
		fetched_blame("the machine's metadata", fault);
	return keys;
}
