// A stub adapter: prints to stdout, like the host, that it was attached.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef STUB_MISSING_SYMBOL
int not_in_any_torch(void);
#endif
int fake_torch_ready(void);

#ifdef STUB_WITHOUT_ENTRY
int something_else(void);
int something_else(void) { return fake_torch_ready(); }
#else
int mptrace_attach(const char* options);
int mptrace_attach(const char* options) {
    char line[256];
    const char* const slash = strrchr(options, '/');
    snprintf(line, sizeof line, "attach ready=%d %s\n", fake_torch_ready(), slash ? slash + 1 : options);
    if (write(1, line, strlen(line)) < 0) return 2;
#ifdef STUB_MISSING_SYMBOL
    return not_in_any_torch();
#else
    const char* const code = getenv("STUB_RETURN");
    errno = 99;
    return code ? atoi(code) : 0;
#endif
}
#endif
