import type { Bus } from '@tollgate/bus'
import type { FileStore } from './store.ts'

const BUCKET = 'files'

/** A file store that every service on the bus shares, whatever machine it is on; all its files together take `maxBytes`. */
export async function objectFiles(bus: Bus, maxBytes: number): Promise<FileStore> {
  const objects = await bus.objects({ bucket: BUCKET, maxBytes })
  return { ...objects, ids: objects.names }
}
