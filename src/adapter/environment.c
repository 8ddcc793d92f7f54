/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of variables. They are short and built once, so they use linear search and one allocation
 * per variable. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/adapter/environment.h"
#include "vethguard/base/secret.h"

extern char **environ;

static const char *const basic_names[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG",
        "LANGUAGE", "TERM", "COLORTERM", "TERMINFO", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR",
        "CLICOLOR", "TZ", "TMPDIR", "PWD", "EDITOR", "VISUAL", "PAGER", "LESS", "HOSTNAME", NULL};
static const char *const basic_starts[] = {"LC_", "XDG_", NULL};

void environment_init(struct environment *env)
{
	*env = (struct environment){0};
}

void environment_fini(struct environment *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->vars[i]);
	free(env->vars);
	environment_init(env);
}

static bool variable_is(const char *var, struct slice name)
{
	return strncmp(var, name.p, name.n) == 0 && var[name.n] == '=';
}

static char **environment_find(const struct environment *env, struct slice name)
{
	for (size_t i = 0; i < env->count; i++)
		if (variable_is(env->vars[i], name))
			return &env->vars[i];
	return NULL;
}

static bool environment_grow(struct environment *env)
{
	size_t cap = env->cap ? env->cap * 2 : 64;
	char **vars;

	if (env->count + 1 < env->cap)
		return true;
	vars = realloc(env->vars, cap * sizeof(*vars));
	if (!vars)
		return false;
	env->vars = vars;
	env->cap = cap;
	return true;
}

void environment_set(struct environment *env, struct slice name, struct slice value)
{
	char **old = environment_find(env, name);
	char *var = malloc(name.n + value.n + 2);

	if (!var || (!old && !environment_grow(env))) {
		free(var);
		env->failed = true;
		return;
	}
	memcpy(var, name.p, name.n);
	var[name.n] = '=';
	memcpy(var + name.n + 1, value.p, value.n);
	var[name.n + 1 + value.n] = '\0';
	if (old) {
		free(*old);
		*old = var;
		return;
	}
	env->vars[env->count++] = var;
	env->vars[env->count] = NULL;
}

void environment_unset(struct environment *env, struct slice name)
{
	char **old = environment_find(env, name);

	if (!old)
		return;
	free(*old);
	*old = env->vars[--env->count];
	env->vars[env->count] = NULL;
}

const char *environment_get(const struct environment *env, const char *name)
{
	char **var = environment_find(env, slice_from_string(name));

	return !var ? NULL : *var + strlen(name) + 1;
}

void environment_copy(struct environment *env, char *const *from)
{
	for (; from && *from; from++) {
		const char *equals = strchr(*from, '=');

		if (equals && equals != *from)
			environment_set(env, slice_of(*from, (size_t)(equals - *from)),
			        slice_from_string(equals + 1));
	}
}

static bool basic(const char *var)
{
	for (const char *const *start = basic_starts; *start; start++)
		if (strncmp(var, *start, strlen(*start)) == 0)
			return true;
	for (const char *const *name = basic_names; *name; name++)
		if (variable_is(var, slice_from_string(*name)))
			return true;
	return false;
}

void environment_copy_basic(struct environment *env, char *const *from)
{
	for (; from && *from; from++) {
		char *one[2] = {*from, NULL};

		if (basic(*from))
			environment_copy(env, one);
	}
}

char *environment_own(struct slice name)
{
	for (char **var = environ; var && *var; var++)
		if (variable_is(*var, name))
			return *var + name.n + 1;
	return NULL;
}

void environment_wipe_own(struct slice name)
{
	char text[256], *value;

	if (name.n >= sizeof(text))
		return;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	/* A variable may occur twice. unsetenv removes all of them, so each is wiped first. */
	while ((value = environment_own(name)) != NULL) {
		for (char **var = environ; *var; var++)
			if (variable_is(*var, name))
				secret_wipe(*var + name.n + 1, strlen(*var + name.n + 1));
		unsetenv(text);
	}
}
