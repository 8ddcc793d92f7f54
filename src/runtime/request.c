/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An unknown name is refused and not skipped: with VETHGUARD_POLCY=strict the container must not
 * start under the default policy. The daemon checks lengths and characters of values.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/slice.h"
#include "runtime/request.h"

#define TTL_MAX_S 31622400u /* as the control API allows */
#define DAY_S 86400u

/* The names as a variable has them and as an annotation has them. */
static const struct {
	const char *variable, *annotation;
} words[] = {{"POLICY", "policy"}, {"NAME", "name"}, {"TTL", "ttl"}};
static const struct {
	const char *variable, *annotation;
} groups[] = {{"LABEL_", "label."}, {"VAR_", "var."}};

static bool is_ours(const char *variable)
{
	return strncmp(variable, REQUEST_VARIABLE, strlen(REQUEST_VARIABLE)) == 0;
}

static bool put(json_t *object, const char *key, const char *value, struct fault *fault)
{
	return json_object_set_new(object, key, json_string(value)) == 0 ||
	       fault_set(fault, "%s", "a value is not UTF-8, or there is no memory");
}

/* name: without its beginning. from: of a variable or of an annotation, for the message. */
static bool take(
        struct request *r, const char *name, const char *value, bool variable, struct fault *fault)
{
	json_t *const objects[] = {r->labels, r->vars};
	const char *start = variable ? REQUEST_VARIABLE : REQUEST_ANNOTATION;
	char shown[96];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(name, variable ? words[i].variable : words[i].annotation) == 0)
			return put(r->texts, words[i].annotation, value, fault);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		const char *group = variable ? groups[i].variable : groups[i].annotation;
		size_t n = strlen(group);

		if (strncmp(name, group, n) == 0 && name[n])
			return put(objects[i], name + n, value, fault);
	}
	return fault_set(fault,
	        "%s%s is not known to vethguard-runtime (known are %s%s, %s, %s, %sNAME, %sNAME)",
	        start, slice_escape(slice_from_string(name), shown, sizeof(shown)), start,
	        variable ? "POLICY" : "policy", variable ? "NAME" : "name",
	        variable ? "TTL" : "ttl", variable ? "LABEL_" : "label.",
	        variable ? "VAR_" : "var.");
}

static bool take_variable(struct request *r, const char *text, struct fault *fault)
{
	const char *name = text + strlen(REQUEST_VARIABLE), *equals = strchr(name, '=');
	char copy[256];

	if (!equals || (size_t)(equals - name) >= sizeof(copy))
		return fault_set(fault,
		        "a variable " REQUEST_VARIABLE "... has no value or too long a name");
	memcpy(copy, name, (size_t)(equals - name));
	copy[equals - name] = '\0';
	return take(r, copy, equals + 1, true, fault);
}

static bool read_variables(struct request *r, const json_t *config, bool heard, struct fault *fault)
{
	const json_t *env = json_object_get(json_object_get(config, "process"), "env");

	if (env && !json_is_array(env))
		return fault_set(fault, "config.json: process.env has to be a list");
	for (size_t i = 0; i < json_array_size(env); i++) {
		const char *text = json_string_value(json_array_get(env, i));

		if (!text)
			return fault_set(
			        fault, "config.json: process.env[%zu] has to be a string", i);
		if (is_ours(text) && heard && !take_variable(r, text, fault))
			return false;
	}
	return true;
}

static bool read_annotations(struct request *r, const json_t *config, struct fault *fault)
{
	json_t *annotations = json_object_get(config, "annotations");

	if (annotations && !json_is_object(annotations))
		return fault_set(fault, "config.json: annotations have to be an object");
	for (void *at = json_object_iter(annotations); at;
	        at = json_object_iter_next(annotations, at)) {
		const char *key = json_object_iter_key(at);
		const char *value = json_string_value(json_object_iter_value(at));

		if (strncmp(key, REQUEST_ANNOTATION, strlen(REQUEST_ANNOTATION)) != 0)
			continue;
		if (!value)
			return fault_set(fault, "config.json: an annotation " REQUEST_ANNOTATION
			                        "... has to be a text");
		if (!take(r, key + strlen(REQUEST_ANNOTATION), value, false, fault))
			return false;
	}
	return true;
}

bool request_read_ttl(const char *text, uint64_t *out)
{
	static const char units[] = "smhd";
	static const uint64_t seconds[] = {1, 60, 3600, DAY_S};
	size_t n = strlen(text);
	const char *unit = n ? strchr(units, text[n - 1]) : NULL;
	uint64_t factor = unit ? seconds[unit - units] : 1;

	if (!slice_to_u64(slice_of(text, unit ? n - 1 : n), TTL_MAX_S / factor, out))
		return false;
	*out *= factor;
	return *out > 0;
}

bool request_read(struct request *r, const json_t *config, bool environment, struct fault *fault)
{
	const char *ttl;

	*r = (struct request){
	        .texts = json_object(), .labels = json_object(), .vars = json_object()};
	if (!r->texts || !r->labels || !r->vars)
		return fault_set(fault, "no memory");
	if (!read_variables(r, config, environment, fault) || !read_annotations(r, config, fault))
		return false;
	r->policy = json_string_value(json_object_get(r->texts, "policy"));
	r->name = json_string_value(json_object_get(r->texts, "name"));
	ttl = json_string_value(json_object_get(r->texts, "ttl"));
	return !ttl || request_read_ttl(ttl, &r->ttl_s) ||
	       fault_set(fault, "the container's ttl is not a duration; write 90s, 30m, 2h or 7d, "
	                        "at most 366d");
}

void request_strip(json_t *process)
{
	json_t *env = json_object_get(process, "env");

	for (size_t i = json_array_size(env); i-- > 0;) {
		const char *text = json_string_value(json_array_get(env, i));

		if (text && is_ours(text))
			json_array_remove(env, i);
	}
}

void request_free(struct request *r)
{
	json_decref(r->texts);
	json_decref(r->labels);
	json_decref(r->vars);
	*r = (struct request){.policy = NULL};
}
