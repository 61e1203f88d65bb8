import { defaultSandboxSettings } from '../src/index.ts'

const MIB = 1024 * 1024
/** Small enough for any machine that runs the tests. */
export const smallLimits = {
  ...defaultSandboxSettings.limits,
  memoryBytes: 400 * MIB,
  workspaceBytes: 64 * MIB,
  temporaryBytes: 32 * MIB,
  fileBytes: 48 * MIB,
  inodes: 20_000,
}
