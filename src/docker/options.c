/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `docker network create -o KEY=VALUE`. An unknown one is refused, with a hint at
 * the one that was probably meant: with a mistyped "polcy", a network must not be made.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/diag.h"
#include "docker/docker.h"

#define SHOWN_MAX 96
#define LABEL "label."
#define VAR "var."

static const char *const names[] = {
        "policy", "name", "ttl", "observe", "label.KEY", "var.KEY", NULL};

static bool take_pair(
        const char *option, size_t start, const char *value, json_t *pairs, size_t max, char *fault)
{
	char shown[SHOWN_MAX];

	slice_escape(slice_from_string(option), shown, sizeof(shown));
	if (!option[start])
		return docker_wrong(fault, "-o %s: a key has to follow the dot", shown);
	if (json_object_size(pairs) >= max)
		return docker_wrong(fault, "-o %s: more than %zu of them", shown, max);
	if (json_object_set_new(pairs, option + start, json_string(value)) < 0)
		return docker_wrong(fault, "-o %s: no memory", shown);
	return true;
}

/* "90s", "30m", "2h", "7d", or seconds. */
static bool read_ttl(const char *value, uint32_t *out)
{
	static const struct {
		char letter;
		uint32_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	struct slice digits = slice_from_string(value);
	uint64_t unit = 1, count;

	for (size_t i = 0; digits.n > 1 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (value[digits.n - 1] != units[i].letter)
			continue;
		unit = units[i].seconds;
		digits.n--;
		break;
	}
	if (!slice_to_u64(digits, DOCKER_TTL_MAX_S / unit, &count) || count == 0)
		return false;
	*out = (uint32_t)(count * unit);
	return true;
}

static bool take_policy(struct docker_network *network, const char *value, char *fault)
{
	char shown[SHOWN_MAX];

	if (!policy_name_is_valid(value))
		return docker_wrong(fault,
		        "-o policy=%s: a policy's name has up to %d letters, digits, '.', '_' and "
		        "'-', begins with a letter or digit, and is not a path",
		        slice_escape(slice_from_string(value), shown, sizeof(shown)),
		        POLICY_FILE_NAME_MAX);
	snprintf(network->policy, sizeof(network->policy), "%s", value);
	return true;
}

static bool take_name(struct docker_network *network, const char *value, char *fault)
{
	char shown[SHOWN_MAX];

	if (!docker_name_is_plain(value, DOCKER_PREFIX_MAX))
		return docker_wrong(fault,
		        "-o name=%s: the beginning of its sandboxes' names has up to %d letters, "
		        "digits, '.', '_' and '-', and begins with a letter or digit",
		        slice_escape(slice_from_string(value), shown, sizeof(shown)),
		        DOCKER_PREFIX_MAX);
	snprintf(network->prefix, sizeof(network->prefix), "%s", value);
	return true;
}

static bool unknown(const char *key, char *fault)
{
	const struct diag_known known = {names, "known here", NULL, NULL};
	char shown[SHOWN_MAX], hint[DIAG_HINT_MAX];

	slice_escape(slice_from_string(key), shown, sizeof(shown));
	return docker_wrong(fault, "-o %s: there is no such option%s", shown,
	        diag_hint(slice_from_string(key), &known, hint));
}

static bool take(struct docker_network *network, const char *key, const char *value, char *fault)
{
	char shown[SHOWN_MAX];

	slice_escape(slice_from_string(value), shown, sizeof(shown));
	if (strcmp(key, "policy") == 0)
		return take_policy(network, value, fault);
	if (strcmp(key, "name") == 0)
		return take_name(network, value, fault);
	if (strcmp(key, "ttl") == 0)
		return read_ttl(value, &network->ttl_s) ||
		       docker_wrong(fault,
		               "-o ttl=%s: for example 90s, 30m, 2h or 7d, at most 366d", shown);
	if (strcmp(key, "observe") == 0) {
		network->observe = strcmp(value, "true") == 0;
		return network->observe || strcmp(value, "false") == 0 ||
		       docker_wrong(fault, "-o observe=%s: has to be true or false", shown);
	}
	if (strncmp(key, LABEL, strlen(LABEL)) == 0)
		return take_pair(
		        key, strlen(LABEL), value, network->labels, DOCKER_LABELS_MAX, fault);
	if (strncmp(key, VAR, strlen(VAR)) == 0)
		return take_pair(key, strlen(VAR), value, network->vars, DOCKER_VARS_MAX, fault);
	return unknown(key, fault);
}

static bool check_lengths(const char *key, const json_t *value, char *fault)
{
	char shown[SHOWN_MAX];

	slice_escape(slice_from_string(key), shown, sizeof(shown));
	if (strlen(key) > DOCKER_OPTION_KEY_MAX)
		return docker_wrong(
		        fault, "-o %s: longer than %d bytes", shown, DOCKER_OPTION_KEY_MAX);
	if (!json_is_string(value))
		return docker_wrong(fault, "-o %s: has to be a string", shown);
	if (json_string_length(value) > DOCKER_OPTION_VALUE_MAX)
		return docker_wrong(fault, "-o %s: its value is longer than %d bytes", shown,
		        DOCKER_OPTION_VALUE_MAX);
	return true;
}

bool docker_options_read(const json_t *options, struct docker_network *network, char *fault)
{
	/* jansson's iteration takes no const; nothing is changed. */
	json_t *all = (json_t *)(uintptr_t)options;

	if (options && !json_is_null(options) && !json_is_object(options))
		return docker_wrong(fault, "the options of the network have to be an object");
	for (void *at = json_object_iter(all); at; at = json_object_iter_next(all, at)) {
		const char *key = json_object_iter_key(at);
		const json_t *value = json_object_iter_value(at);

		if (!check_lengths(key, value, fault) ||
		        !take(network, key, json_string_value(value), fault))
			return false;
	}
	if (!network->policy[0])
		return docker_wrong(fault,
		        "which policy? -o policy=NAME, of a file NAME.yaml in the directory of "
		        "policies (" POLICY_DIRECTORY_DEFAULT ")");
	if (!network->prefix[0])
		snprintf(network->prefix, sizeof(network->prefix), "%.*s", DOCKER_PREFIX_MAX,
		        network->policy);
	return true;
}
