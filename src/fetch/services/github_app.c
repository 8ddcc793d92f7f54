/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GitHub App's installation token: the App proves itself by a token that its key signs (RS256),
 * and asks for one of an installation, narrowed to repositories and permissions where the policy
 * names them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fetch/services/services.h"
#include "vethguard/tls/jwt.h"

#define CLOCK_SLACK_S 60 /* GitHub's clock may be behind ours */
#define PROOF_LIFE_S 540 /* GitHub takes 10 minutes at most */
#define PROOF_MAX 8192

static bool make_proof(
        const struct fetch_request *request, struct buf *out, char fault[HTTPS_TEXT_MAX])
{
	const struct slice app = fetch_argument(request, "app_id");
	const long long now = (long long)time(NULL);
	char claims[512], shown[128];
	int rc;

	slice_escape(app, shown, sizeof(shown));
	snprintf(claims, sizeof(claims), "{\"iat\":%lld,\"exp\":%lld,\"iss\":\"%s\"}",
	        now - CLOCK_SLACK_S, now + PROOF_LIFE_S, shown);
	rc = buf_append_slice(out, SLICE("Authorization: Bearer "));
	if (rc == 0)
		rc = jwt_sign_rs256(request->secret, slice_from_string(claims), out);
	if (rc == 0)
		rc = buf_append(out, "", 1);
	if (rc == 0)
		return true;
	snprintf(fault, HTTPS_TEXT_MAX, "the App's key %s",
	        rc == -EINVAL         ? "is not an RSA key in PEM without a passphrase"
	        : rc == -EKEYREJECTED ? "is shorter than 2048 bits"
	                              : "cannot be used: no memory");
	return false;
}

/* Takes the next word off a list that commas separate. */
static bool next_word(struct slice *list, struct slice *word)
{
	ptrdiff_t comma = slice_find_byte(*list, ',');
	size_t n = comma < 0 ? list->n : (size_t)comma;

	if (list->n == 0)
		return false;
	*word = slice_of(list->p, n);
	n += comma >= 0;
	*list = slice_of(list->p + n, list->n - n);
	return true;
}

static char *make_body(const struct fetch_request *request)
{
	struct slice list = fetch_argument(request, "repositories"), word;
	json_t *body = json_object(), *names = json_array(), *levels = json_object();
	char *text;

	while (next_word(&list, &word))
		json_array_append_new(names, json_stringn(word.p, word.n));
	list = fetch_argument(request, "permissions");
	while (next_word(&list, &word)) {
		ptrdiff_t colon = slice_find_byte(word, ':');

		if (colon > 0)
			json_object_setn_new(levels, word.p, (size_t)colon,
			        json_stringn(word.p + colon + 1, word.n - (size_t)colon - 1));
	}
	if (json_array_size(names))
		json_object_set(body, "repositories", names);
	if (json_object_size(levels))
		json_object_set(body, "permissions", levels);
	text = json_dumps(body, JSON_COMPACT);
	json_decref(names);
	json_decref(levels);
	json_decref(body);
	return text;
}

static json_t *ask(const struct fetch_request *request, struct https *https, const char *proof,
        const char *body, char fault[HTTPS_TEXT_MAX])
{
	const struct slice id = fetch_argument(request, "installation_id");
	const char *fields[] = {proof, "Accept: application/vnd.github+json",
	        "Content-Type: application/json", "X-GitHub-Api-Version: 2022-11-28", NULL};
	char url[HTTPS_URL_MAX], path[HTTPS_URL_MAX];

	snprintf(path, sizeof(path), "/app/installations/%.*s/access_tokens", SLICE_ARG(id));
	if (!fetch_url(request, path, url, sizeof(url))) {
		snprintf(fault, HTTPS_TEXT_MAX, "the URL is too long");
		return NULL;
	}
	return https_json(https,
	        &(struct https_call){.method = "POST",
	                .url = url,
	                .fields = fields,
	                .body = slice_from_string(body)},
	        fault);
}

bool github_app_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	char *body = make_body(request);
	json_t *answer = NULL;
	struct buf proof;
	bool taken;

	private_buf_init(&proof, PROOF_MAX);
	snprintf(fault, HTTPS_TEXT_MAX, "no memory");
	if (body && make_proof(request, &proof, fault))
		answer = ask(request, https, (const char *)buf_bytes(&proof), body, fault);
	taken = answer && fetched_take(json_object_get(answer, "token"), "token", out, fault);
	if (taken)
		fetched_ends(out, json_string_value(json_object_get(answer, "expires_at")));
	json_decref(answer);
	private_buf_fini(&proof);
	free(body);
	return taken;
}
