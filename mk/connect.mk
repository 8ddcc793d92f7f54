# vethguard-connect (contrib/connect): one static program, because nothing is known of the sandbox's system. `make` does not build it,
# because not every system has the libraries as archives; Debian's packages libssl-dev and libevent-dev have them.
CONNECT := $(BIN)/vethguard-connect
CONNECT_SOURCES := $(wildcard contrib/connect/*.c)
CONNECT_OBJ := $(patsubst contrib/connect/%.c,$(OBJ)/connect/%.o,$(CONNECT_SOURCES))
CONNECT_ARCHIVES := $(call archives,proxy dns adapter tls ipc loop policy wire base)
CONNECT_STATIC := $(if $(filter release,$(VARIANT)),-static-pie)

.PHONY: connect
## make connect         the program for sandboxes behind a gateway: build/bin/vethguard-connect, static
connect: $(CONNECT)

$(OBJ)/connect/%.o: contrib/connect/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Icontrib/connect $(WARNINGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Of the proxy it takes udp_socket.c alone. The linker warns of getaddrinfo() and dlopen() in a static program. libevent and OpenSSL have
# such calls, which this program never makes.
$(CONNECT): $(CONNECT_OBJ) $(CONNECT_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $(CONNECT_STATIC) -Wl,--no-warnings -o $@ $(CONNECT_OBJ) -Wl,--start-group $(CONNECT_ARCHIVES) -Wl,--end-group \
		-levent_openssl -levent_extra -levent_core $(LIBS_SSL) $(LIBS_YAML)

# Its units (tests/unit/connect) are linked with all of it but main().
$(BUILD)/tests/unit/connect/%: tests/unit/connect/%.c $(CONNECT_OBJ) $(CONNECT_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Icontrib/connect -Itests/lib $(TEST_CFLAGS) -MMD -MP $(TEST_LDFLAGS) $(WRAPPED) -o $@ $< \
		-Wl,--start-group $(filter-out %/main.o,$(CONNECT_OBJ)) $(CONNECT_ARCHIVES) -Wl,--end-group \
		-levent_openssl -levent_extra -levent_core $(LIBS_SSL) $(LIBS_YAML) $(LIBS_CMOCKA)

-include $(CONNECT_OBJ:.o=.d)
