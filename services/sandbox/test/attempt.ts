import { printed, type SessionClient } from './harness.ts'

/** Python that says the name of the error, or what it got. */
const attempt = (code: string): string => `
import ctypes, errno, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
try:
    got = ${code}
    print("GOT", got)
except OSError as error:
    print(errno.errorcode.get(error.errno, "timeout" if isinstance(error, TimeoutError) else error.errno))
except PermissionError as error:
    print("EPERM")
`

/** Whether a session may do something: the name of the error, or `GOT` and what came of it. */
export const triedIn = async (session: SessionClient, code: string): Promise<string> =>
  printed(await session.python(attempt(code))).trim()
