/** How strictly sessions are kept apart, from not at all to best. */
export const isolationLevels = ['process', 'landlock', 'landlock-uid', 'ns'] as const
export type IsolationLevel = (typeof isolationLevels)[number]

/** What one session may use. */
export interface SessionLimits {
  /** Of all its processes together, and of each one's address space. */
  memoryBytes: number
  /** Threads count too, where the kernel keeps the count. */
  processes: number
  openFiles: number
  /** One file that a program writes. */
  fileBytes: number
  workspaceBytes: number
  /** `/tmp` and `/dev/shm`, where a session has its own. */
  temporaryBytes: number
  sharedBytes: number
  /** Files and folders, in the workspace and in `/tmp` each. */
  inodes: number
  /** Kept of each of stdout and stderr; the rest is counted and dropped. */
  outputBytes: number
  /** One file going in or out through the API. */
  transferBytes: number
}

export interface SandboxSettings {
  host: string
  /** 0: any free one. */
  port: number
  /** Bearer credential asked of clients; needed on an address that is not a loopback one. */
  token?: string
  /** The interpreter; without it the first that is found. */
  python?: string
  /** Nothing weaker is ever used: the start fails instead. `process` means no isolation and allows loopback only. */
  minIsolation: IsolationLevel
  maxSessions: number
  /** Sessions kept ready for the next client. */
  warmSessions: number
  /** Modules loaded once for all sessions; those that are not installed are passed over. */
  preload: string[]
  /** Granted to a call that asks for no time, and the most that any gets. */
  defaultExecSeconds: number
  maxExecSeconds: number
  /** Given to sessions that ask for no lifetime, and the most that any gets. */
  idleSeconds: number
  lifetimeSeconds: number
  /** How often a client that is sent output as it is written hears that a silent call goes on. */
  keepAliveSeconds: number
  /** How long a client may take no byte of a finished answer before its connection is closed. */
  unreadAnswerSeconds: number
  /** The first of the user ids that sessions get where the server is root. */
  firstUserId: number
  limits: SessionLimits
}

const MIB = 1024 * 1024

export const defaultSandboxSettings: SandboxSettings = {
  host: '127.0.0.1',
  port: 0,
  minIsolation: 'landlock',
  maxSessions: 64,
  warmSessions: 2,
  preload: [
    ...['json', 're', 'math', 'random', 'datetime', 'collections', 'itertools', 'functools', 'statistics', 'csv'],
    ...['numpy', 'pandas', 'matplotlib.pyplot'],
  ],
  defaultExecSeconds: 30,
  maxExecSeconds: 120,
  idleSeconds: 900,
  lifetimeSeconds: 7_200,
  keepAliveSeconds: 10,
  unreadAnswerSeconds: 60,
  firstUserId: 200_000,
  limits: {
    memoryBytes: 1_536 * MIB,
    processes: 64,
    openFiles: 256,
    fileBytes: 256 * MIB,
    workspaceBytes: 512 * MIB,
    temporaryBytes: 128 * MIB,
    sharedBytes: 64 * MIB,
    inodes: 65_536,
    outputBytes: MIB,
    transferBytes: 100 * MIB,
  },
}
