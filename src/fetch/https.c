/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by libcurl; see fetch/https.h. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/https_fault.h"
#include "fetch/private_buf.h"
#include "vethguard/base/ip.h"

#define TIMEOUT_MS 30000 /* the supervisor's limit usually comes first */
#define CONNECT_TIMEOUT_MS 10000

struct https {
	CURL *curl;
	struct curl_slist *resolve;
	struct curl_blob trusted;
	struct slice hidden[2 * MESSAGE_FETCH_SECRETS_MAX]; /* never shown in an error message */
	size_t hidden_count;
	const struct https_call *call; /* under way */
	struct buf answer;
	bool too_long;
	long status;
	uint32_t retry_s; /* see https_retry_s() */
};

static size_t on_body(char *p, size_t size, size_t count, void *context)
{
	struct https *https = context;

	if (buf_append(&https->answer, p, size * count) == 0)
		return size * count;
	https->too_long = true;
	return 0;
}

struct https *https_open(void)
{
	struct https *https = calloc(1, sizeof(*https));

	if (!https)
		return NULL;
	private_buf_init(&https->answer, HTTPS_ANSWER_MAX);
	https->curl = curl_easy_init();
	if (https->curl && https->answer.mem)
		return https;
	https_free(https);
	return NULL;
}

static bool add_addresses(struct https *https, const struct message_fetch_site *addresses,
        const struct fetch_site *site)
{
	struct ip literal;
	char text[FETCH_HOST_MAX + 16 + MESSAGE_FETCH_ADDRESSES_MAX * (IP_TEXT_MAX + 4)];
	int n = snprintf(text, sizeof(text), "%s:%u:", site->host, site->port);
	struct curl_slist *longer;

	if (ip_parse(slice_from_string(site->host), &literal))
		return true; /* dialed as it is; and libcurl takes no IPv6 address for a name here
		              */
	for (size_t i = 0; i < addresses->address_count; i++) {
		char address[IP_TEXT_MAX];

		ip_format(&addresses->addresses[i], address);
		n += snprintf(text + n, sizeof(text) - (size_t)n,
		        addresses->addresses[i].family == 6 ? "%s[%s]" : "%s%s", i ? "," : "",
		        address);
	}
	longer = curl_slist_append(https->resolve, text);
	if (longer)
		https->resolve = longer;
	return longer != NULL;
}

bool https_resolve(struct https *https, const struct fetch_request *request)
{
	const struct message_fetch *m = &request->message;

	for (size_t i = 0; i < m->site_count; i++)
		if (!add_addresses(https, &m->sites[i], &request->sites[i]))
			return false;
	return true;
}

uint32_t https_retry_s(const struct https *https)
{
	return https->retry_s;
}

long https_status(const struct https *https)
{
	return https->status;
}

bool https_header(const struct https *https, const char *name, char *out, size_t out_size)
{
	struct curl_header *header;

	return curl_easy_header(https->curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
	       (size_t)snprintf(out, out_size, "%s", header->value) < out_size;
}

void https_free(struct https *https)
{
	if (https->curl)
		curl_easy_cleanup(https->curl);
	curl_slist_free_all(https->resolve);
	private_buf_fini(&https->answer);
	free(https);
}

void https_trust(struct https *https, struct slice pem)
{
	https->trusted = (struct curl_blob){
	        .data = (void *)(uintptr_t)pem.p, .len = pem.n, .flags = CURL_BLOB_NOCOPY};
}

void https_hide(struct https *https, struct slice secret, struct slice encoded)
{
	if (https->hidden_count + 2 > sizeof(https->hidden) / sizeof(https->hidden[0]))
		return;
	https->hidden[https->hidden_count++] = secret;
	https->hidden[https->hidden_count++] = encoded;
}

/* curl_easy_setopt() takes its argument by its type, so the options stand here one by one. */
static bool set_options(
        struct https *https, const struct https_call *call, struct curl_slist *fields)
{
	CURL *curl = https->curl;
	const bool get = strcmp(call->method, "GET") == 0;
	/* fetch_site_read() has taken no plain URL but one of this link. */
	const bool plain = strncmp(call->url, "http://", 7) == 0;

	curl_easy_reset(curl);
	if (curl_easy_setopt(curl, CURLOPT_URL, call->url) != CURLE_OK ||
	        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, plain ? "http" : "https") !=
	                CURLE_OK ||
	        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &https->trusted) != CURLE_OK ||
	        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL) != CURLE_OK ||
	        curl_easy_setopt(curl, CURLOPT_RESOLVE, https->resolve) != CURLE_OK)
		return false;
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "vethguard");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, https);
	if (!get) {
		curl_easy_setopt(curl, CURLOPT_POST, 1L);
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)call->body.n);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body.p);
	}
	return curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields) == CURLE_OK;
}

/* A line end would begin another field, or another request: a token of a service's answer may hold
 * one. */
static bool are_lines(const char *const *fields)
{
	for (; fields && *fields; fields++)
		for (const char *p = *fields; *p; p++)
			if (((uint8_t)*p < ' ' && *p != '\t') || *p == 0x7f)
				return false;
	return true;
}

static struct curl_slist *list_of(const char *const *fields)
{
	struct curl_slist *list = NULL, *longer;

	for (; fields && *fields; fields++) {
		longer = curl_slist_append(list, *fields);
		if (!longer) {
			curl_slist_free_all(list);
			return NULL;
		}
		list = longer;
	}
	return list;
}

/* Explains the last answer, which is an error or not JSON, and notes how long to wait. */
static void explain(struct https *https, const json_t *json, char fault[HTTPS_TEXT_MAX])
{
	const struct https_sent sent = {https->hidden, https->hidden_count, https->call};
	struct https_answer answer = {https->status, buf_slice(&https->answer), json, false};
	curl_off_t retry = 0;

	curl_easy_getinfo(https->curl, CURLINFO_RETRY_AFTER, &retry);
	answer.has_retry_after = retry > 0;
	if (https_fault_is_throttled(&answer))
		https->retry_s = retry <= 0                    ? HTTPS_RETRY_S
		                 : retry < MESSAGE_RETRY_MAX_S ? (uint32_t)retry
		                                               : MESSAGE_RETRY_MAX_S;
	https_fault_explain(&answer, &sent, fault);
}

/* Returns true if a whole answer came. */
static bool is_whole(struct https *https, CURLcode code, char fault[HTTPS_TEXT_MAX])
{
	if (https->too_long) {
		snprintf(fault, HTTPS_TEXT_MAX, "its answer is longer than %u bytes",
		        HTTPS_ANSWER_MAX);
		return false;
	}
	if (code != CURLE_OK) {
		snprintf(fault, HTTPS_TEXT_MAX, "it cannot be asked: %s", curl_easy_strerror(code));
		return false;
	}
	curl_easy_getinfo(https->curl, CURLINFO_RESPONSE_CODE, &https->status);
	return true;
}

static json_t *understand(struct https *https, char fault[HTTPS_TEXT_MAX])
{
	json_t *answer;

	if (https->status == 204) /* no content (RFC 9110 section 15.3.5) */
		return json_object();
	answer = json_loadb((const char *)buf_bytes(&https->answer), https->answer.len,
	        JSON_REJECT_DUPLICATES, NULL);
	if (answer && https->status / 100 == 2)
		return answer;
	explain(https, answer, fault);
	json_decref(answer);
	return NULL;
}

/* Returns true if there is a whole answer, of whatever status. */
static bool perform(struct https *https, const struct https_call *call, char fault[HTTPS_TEXT_MAX])
{
	struct curl_slist *fields;
	bool whole = false;

	if (!are_lines(call->fields)) {
		snprintf(fault, HTTPS_TEXT_MAX,
		        "a header field of the request to it would hold a line end or another "
		        "control character");
		return false;
	}
	fields = list_of(call->fields);
	buf_consume(&https->answer, https->answer.len);
	https->too_long = false;
	https->retry_s = 0;
	https->status = 0;
	https->call = call;
	snprintf(fault, HTTPS_TEXT_MAX, "no memory");
	if ((!call->fields || !*call->fields || fields) && set_options(https, call, fields))
		whole = is_whole(https, curl_easy_perform(https->curl), fault);
	curl_slist_free_all(fields);
	return whole;
}

json_t *https_json(struct https *https, const struct https_call *call, char fault[HTTPS_TEXT_MAX])
{
	return perform(https, call, fault) ? understand(https, fault) : NULL;
}

bool https_text(struct https *https, const struct https_call *call, struct slice *text,
        char fault[HTTPS_TEXT_MAX])
{
	json_t *answer;

	if (!perform(https, call, fault))
		return false;
	*text = buf_slice(&https->answer);
	if (https->status / 100 == 2)
		return true;
	answer = json_loadb(text->p, text->n, JSON_REJECT_DUPLICATES, NULL);
	explain(https, answer, fault);
	json_decref(answer);
	return false;
}
