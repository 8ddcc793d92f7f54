/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/libraries.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/wiped.h"
#include "vethguard/tls/jwt.h"

/* libcurl may ask for 0 bytes, and takes NULL for a failure. */
static void *resize(void *p, size_t n)
{
	return wiped_realloc(p, n ? n : 1);
}

void libraries_wipe_memory(void)
{
	tls_library_wipes_memory();
	json_set_alloc_funcs(malloc, wiped_free);
	curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiped_free, resize, strdup, calloc);
}
