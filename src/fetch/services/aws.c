/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS: a secret of Secrets Manager, a parameter of Systems Manager, or the keys of a role
 * themselves, which `inject: sigv4` signs with. All log in in the same ways (aws_login.c).
 */
#include <stdio.h>

#include "fetch/services/aws.h"

/* Asks one of the services that speak JSON. Returns NULL with a sentence in fault. */
static json_t *ask(const struct fetch_request *request, struct https *https, const char *service,
        const char *target, json_t *body, char fault[HTTPS_TEXT_MAX])
{
	struct aws_call call = {.url = request->message.sites[0].url,
	        .service = slice_from_string(service),
	        .type = "application/x-amz-json-1.1",
	        .target = target};
	struct fetched lives = {0};
	struct aws_keys *keys = aws_log_in(request, https, &lives, fault);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct slice answer;
	json_t *json = NULL;

	call.body = slice_from_string(text ? text : "");
	if (keys && aws_post(request, https, keys, &call, &answer, fault)) {
		json = json_loadb(answer.p, answer.n, JSON_REJECT_DUPLICATES, NULL);
		if (!json)
			snprintf(fault, HTTPS_TEXT_MAX, "what it answered is not JSON");
	}
	aws_keys_free(keys);
	free(text);
	json_decref(body);
	return json;
}

static bool take(const struct fetch_request *request, const json_t *value, const char *name,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	if (json_is_string(value))
		return fetched_take_secret(request,
		        slice_of(json_string_value(value), json_string_length(value)), out, fault);
	snprintf(fault, HTTPS_TEXT_MAX, "its answer has no string %s", name);
	return false;
}

bool aws_secret_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	const struct slice id = fetch_argument(request, "secret");
	const struct slice stage = fetch_argument(request, "version_stage");
	json_t *body = json_pack("{s:s%}", "SecretId", id.p, id.n), *answer;
	bool taken;

	if (stage.n)
		json_object_set_new(body, "VersionStage", json_stringn(stage.p, stage.n));
	answer =
	        ask(request, https, "secretsmanager", "secretsmanager.GetSecretValue", body, fault);
	taken = answer &&
	        take(request, json_object_get(answer, "SecretString"), "SecretString", out, fault);
	json_decref(answer);
	return taken;
}

bool aws_parameter_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const struct slice name = fetch_argument(request, "name");
	json_t *body = json_pack("{s:s%, s:b}", "Name", name.p, name.n, "WithDecryption", 1);
	json_t *answer = ask(request, https, "ssm", "AmazonSSM.GetParameter", body, fault);
	const json_t *parameter = json_object_get(answer, "Parameter");
	bool taken = answer && take(request, json_object_get(parameter, "Value"), "Parameter.Value",
	                               out, fault);

	json_decref(answer);
	return taken;
}

bool aws_role_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	struct aws_keys *keys = aws_log_in(request, https, out, fault);
	bool taken;

	if (!keys)
		return false;
	taken = buf_printf(&out->value, "%.*s:%.*s%s%.*s", SLICE_ARG(keys->id),
	                SLICE_ARG(keys->secret), keys->token.n ? ":" : "",
	                SLICE_ARG(keys->token)) == 0;
	aws_keys_free(keys);
	if (!taken)
		snprintf(fault, HTTPS_TEXT_MAX, "its keys are longer than a credential may be");
	return taken;
}
