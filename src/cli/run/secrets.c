/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an agent is often started from a shell with keys that nobody thought of and
 * the policy does not name. Their names show them, by the endings that programs use; so do URLs
 * with passwords in them. This is a warning and not a guard: --clean-env decides what the command
 * gets.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/secrets.h"
#include "vethguard/base/log.h"

#define LINE_MAX_BYTES 1024

/* Whole names without a telling ending. In capitals, like all names here: names are compared
 * without regard to case. */
static const struct slice names[] = {{"PGPASSWORD", 10}, {"MYSQL_PWD", 9}, {"SSHPASS", 7},
        {"TOKEN", 5}, {"SECRET", 6}, {"PASSWORD", 8}, {"PASSWD", 6}, {"API_KEY", 7}, {"APIKEY", 6},
        {"REDISCLI_AUTH", 13}, {"DOCKER_AUTH_CONFIG", 18}};

/* NPM's own are npm_config_//registry.example/:_authToken. */
static const struct slice endings[] = {{"_TOKEN", 6}, {"_SECRET", 7}, {"_API_KEY", 8},
        {"_APIKEY", 7}, {"_PASSWORD", 9}, {"_PASSWD", 7}, {"_PASSPHRASE", 11}, {"_ACCESS_KEY", 11},
        {"_SECRET_KEY", 11}, {"_PRIVATE_KEY", 12}, {"_AUTHTOKEN", 10}, {"_PAT", 4}};

static bool ends_in(struct slice name, struct slice ending)
{
	return name.n > ending.n &&
	       slice_equals_ignoring_case(slice_of(name.p + name.n - ending.n, ending.n), ending);
}

static bool is_telling(struct slice name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_equals_ignoring_case(name, names[i]))
			return true;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (ends_in(name, endings[i]))
			return true;
	return false;
}

/* True if SCHEME://USER:PASSWORD@ is anywhere in the value; the user may be empty
 * (redis://:password@host). */
static bool has_password_url(struct slice value)
{
	const char *at = value.p, *end = value.p + value.n;

	while ((at = memmem(at, (size_t)(end - at), "://", 3))) {
		const char *colon = NULL;

		if (at > value.p && isalnum((unsigned char)at[-1]))
			for (const char *p = at + 3; p < end && !strchr("/?# \t\n\"'", *p); p++) {
				if (*p == ':' && !colon)
					colon = p;
				if (*p == '@' && colon && p - colon > 1)
					return true;
			}
		at += 3;
	}
	return false;
}

bool run_secrets_is_one(struct slice name, struct slice value)
{
	return (value.n >= RUN_SECRETS_VALUE_MIN && is_telling(name)) || has_password_url(value);
}

static bool is_of_option(const char *option, struct slice name)
{
	return strncmp(option, name.p, name.n) == 0 && (option[name.n] == '=' || !option[name.n]);
}

/* True if the variable is meant to go in or is a placeholder. */
static bool is_meant(
        const struct run_options *options, const struct message_run_ready *ready, struct slice name)
{
	for (size_t i = 0; i < options->env_count; i++)
		if (is_of_option(options->env[i], name))
			return true;
	for (size_t i = 0; i < options->keep_count; i++)
		if (is_of_option(options->keep[i], name))
			return true;
	for (size_t i = 0; i < ready->env_count; i++)
		if (slice_equals(ready->env[i].name, name))
			return true;
	return false;
}

void run_secrets_tell(const struct environment *env, const struct run_options *options,
        const struct message_run_ready *ready)
{
	char line[LINE_MAX_BYTES], shown[RUN_SECRETS_NAME_SHOWN], more[32] = "";
	size_t n = 0, told = 0, count = 0;

	for (size_t i = 0; i < env->count; i++) {
		const char *var = env->vars[i], *equals = strchr(var, '=');
		struct slice name = slice_of(var, (size_t)(equals - var));

		if (!run_secrets_is_one(name, slice_from_string(equals + 1)) ||
		        is_meant(options, ready, name))
			continue;
		if (++count > RUN_SECRETS_TOLD_MAX)
			continue;
		told++;
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", told > 1 ? ", " : "",
		        slice_escape(name, shown, sizeof(shown)));
	}
	if (count > told)
		snprintf(more, sizeof(more), " and %zu more", count - told);
	if (count)
		log_warn("the command gets what looks like secrets: %s%s; --clean-env leaves them "
		         "out, --keep-env NAME keeps one",
		        line, more);
}
