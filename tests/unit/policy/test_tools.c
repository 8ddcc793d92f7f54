/* SPDX-License-Identifier: Apache-2.0 */
/* The filter takes the tools that may not be called out of lists of tools; everything else stays as
 * it was written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "vethguard/policy/tools.h"

/* Tools that begin with "a" may be called. */
static bool may_call(void *context, struct slice tool)
{
	++*(unsigned *)context;
	return tool.n > 0 && tool.p[0] == 'a';
}

static char *quoted(const char *text)
{
	char *copy = strdup(text);

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

/* Filters the text, with ' for ". want is NULL if nothing is taken out. */
static void check(const char *text, const char *want)
{
	unsigned asked = 0;
	const struct policy_tools tools = {&asked, may_call, NULL};
	char *in = quoted(text), *out = want ? quoted(want) : NULL;
	struct buf made;
	int rc;

	buf_init(&made, 4096);
	rc = policy_tools_filter(&tools, slice_from_string(in), &made);
	if (rc != (want != NULL))
		fail_msg("%s: %d", in, rc);
	if (want && !slice_equals(buf_slice(&made), slice_from_string(out)))
		fail_msg("%s gave %.*s", in, SLICE_ARG(buf_slice(&made)));
	buf_fini(&made);
	free(in);
	free(out);
}

#define LIST(tools) "{'jsonrpc':'2.0','id':1,'result':{'tools':[" tools "],'nextCursor':'x'}}"

static void test_kept(void **state)
{
	(void)state;
	check(LIST(""), NULL);
	check(LIST("{'name':'a'}"), NULL);
	check(LIST("{'name':'a','description':'b'},{'inputSchema':{'name':'b'},'name':'a2'}"),
	        NULL);
	check("{'jsonrpc':'2.0','id':1,'result':{'content':[{'tools':[{'name':'b'}]}]}}", NULL);
	check("{'jsonrpc':'2.0','method':'x','params':{'tools':[{'name':'b'}]}}", NULL);
	check("{'result':{'tools':{'name':'b'}}}", NULL);
	check("{'result':[{'tools':[{'name':'b'}]}]}", NULL);
	check("{}", NULL);
	check("[]", NULL);
	check("[1,'a',{'id':1}]", NULL);
}

static void test_taken_out(void **state)
{
	(void)state;
	check(LIST("{'name':'b'}"), LIST(""));
	check(LIST("{'name':'a'},{'name':'b'}"), LIST("{'name':'a'}"));
	check(LIST("{'name':'b'},{'name':'a'}"), LIST("{'name':'a'}"));
	check(LIST(" {'name':'b'} , {'x':['[',{'}':'\\'{'}],'name':'a'} ,{'name':'c'} "),
	        LIST("{'x':['[',{'}':'\\'{'}],'name':'a'}"));
	check(LIST("{'name':'\\u0062'},{'name':'\\u0061'}"), LIST("{'name':'\\u0061'}"));
	check("{'r\\u0065sult':{'t\\u006fols':[{'name':'b'}]}}",
	        "{'r\\u0065sult':{'t\\u006fols':[]}}");
	check("{'Result':{'TOOLS':[{'name':'b'}]}}", "{'Result':{'TOOLS':[]}}");
	check("[{'result':{'tools':[{'name':'b'}]}},{'result':{'tools':[{'name':'a'},{'name':'b'}]}"
	      "}]",
	        "[{'result':{'tools':[]}},{'result':{'tools':[{'name':'a'}]}}]");
	check("{'result':{'tools':[{'name':'b'}],'Tools':[{'name':'b'},{'name':'a'}]}}",
	        "{'result':{'tools':[],'Tools':[{'name':'a'}]}}");
	check(" { 'id' : 1.5e3 , 'result' : { 'x' : null , 'tools' : [ true , 1 , {'name':'a'} ] } "
	      "} ",
	        " { 'id' : 1.5e3 , 'result' : { 'x' : null , 'tools' : [{'name':'a'}] } } ");
}

/* A tool whose name readers could take differently is taken out. */
static void test_doubtful(void **state)
{
	(void)state;
	check(LIST("{}"), LIST(""));
	check(LIST("{'Name':'a'}"), LIST(""));
	check(LIST("{'name':'a','Name':'b'}"), LIST(""));
	check(LIST("{'name':['a']}"), LIST(""));
	check(LIST("{'name':null}"), LIST(""));
	check(LIST("[{'name':'a'}]"), LIST(""));
	check(LIST("'a',-1,false"), LIST(""));
}

static void test_broken(void **state)
{
	static const char *const texts[] = {"", "x", "{", LIST("{'name':'b'}") "x",
	        "{'result':{'tools':[{'name':'b','name':'a'}]}}",
	        "{'result':1,'result':{'tools':[]}}", "\xef\xbb\xbf{}",
	        "{'result':{'tools':[{'name':'b'},]}}", NULL};
	unsigned asked = 0;
	const struct policy_tools tools = {&asked, may_call, NULL};
	struct buf made;

	(void)state;
	for (size_t i = 0; texts[i]; i++) {
		char *text = quoted(texts[i]);

		buf_init(&made, 4096);
		assert_int_equal(
		        policy_tools_filter(&tools, slice_from_string(text), &made), -EBADMSG);
		assert_int_equal(made.len, 0);
		buf_fini(&made);
		free(text);
	}
}

static void test_no_room(void **state)
{
	unsigned asked = 0;
	const struct policy_tools tools = {&asked, may_call, NULL};
	struct buf made;

	(void)state;
	buf_init(&made, 8);
	assert_int_equal(policy_tools_filter(&tools,
	                         SLICE("{\"result\":{\"tools\":[{\"name\":\"b\"}]}}"), &made),
	        -ENOMEM);
	buf_fini(&made);
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	*out = (struct policy_field){SLICE("content-type"), slice_from_string(context)};
	return (*at)++ == 0;
}

static bool asks(const char *text, const char *type)
{
	const struct policy_fields fields = {type, next_field};
	char *copy = quoted(text);
	struct policy_body body;
	bool lists;

	policy_body_read(&body, &fields, slice_from_string(copy));
	lists = policy_body_lists_tools(&body);
	policy_body_fini(&body);
	free(copy);
	return lists;
}

static void test_requests(void **state)
{
	static const struct policy_body unread = {.state = POLICY_BODY_UNREAD};
	static const char json[] = "application/json";

	(void)state;
	assert_true(asks("{'method':'tools/list'}", json));
	assert_true(asks("{'METHOD':' Tools/List'}", json));
	assert_true(asks("[{'method':'ping'},{'method':'tools/list'}]", json));
	assert_true(asks("{'method':'ping'}", "text/plain"));
	assert_true(asks("{", json));
	assert_true(policy_body_lists_tools(&unread));
	assert_true(policy_body_lists_tools(NULL));
	assert_false(asks("{'method':'ping'}", json));
	assert_false(asks("{'params':{'method':'tools/list'}}", json));
	assert_false(asks("[1]", json));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_kept),
	        cmocka_unit_test(test_taken_out),
	        cmocka_unit_test(test_doubtful),
	        cmocka_unit_test(test_broken),
	        cmocka_unit_test(test_no_room),
	        cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
