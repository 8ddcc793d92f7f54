/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle's config.json: read, asked for its request, changed and written. What is written is read
 * again as the same, and no process sees how its guard was asked for. */
#include <stdlib.h>
#include <string.h>

#include "runtime/config.h"
#include "runtime/edit.h"
#include "runtime/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void change(json_t *root)
{
	struct fault fault = {""};
	struct environment env;

	environment_init(&env);
	environment_set(&env, SLICE("KEY"), SLICE("placeholder"));
	(void)edit_find_netns(root, &fault);
	(void)edit_is_covered(root, "/etc/ssl/certs/ca-certificates.crt", false);
	(void)edit_has_net_admin(root);
	(void)edit_drop_docker_hook(root);
	request_strip(json_object_get(root, "process"));
	(void)edit_add_mount(root, "/etc/resolv.conf", "/run/x", &fault);
	(void)edit_set_variables(json_object_get(root, "process"), &env, &fault);
	(void)edit_set_netns(root, "/run/netns/x", &fault);
	environment_fini(&env);
}

static void check_env(const json_t *root)
{
	const json_t *env = json_object_get(json_object_get(root, "process"), "env");

	for (size_t i = 0; i < json_array_size(env); i++) {
		const char *text = json_string_value(json_array_get(env, i));

		if (text && strncmp(text, REQUEST_VARIABLE, strlen(REQUEST_VARIABLE)) == 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config = {.root = NULL}, again = {.root = NULL};
	struct fault fault = {""};
	struct request request;
	char *text, *second;

	if (!config_parse(&config, slice_of(data, size), &fault))
		return 0;
	(void)request_read(&request, config.root, true, &fault);
	request_free(&request);
	change(config.root);
	check_env(config.root);
	text = config_text(&config);
	fault.text[0] = '\0';
	if (text && config_parse(&again, slice_from_string(text), &fault)) {
		second = config_text(&again);
		if (second && strcmp(text, second) != 0)
			abort();
		free(second);
	}
	free(text);
	config_free(&config);
	config_free(&again);
	return 0;
}
