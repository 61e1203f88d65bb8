import type { Connection, Engine } from './engine.ts'
import { brokeConnection, databaseFault } from './faults.ts'
import { inQuerySpan } from './spans.ts'

/** An engine whose failures are named, whose broken connections are not lent again, and whose statements show in traces. */
export function guarded(engine: Engine): Engine {
  return {
    kind: engine.kind,
    close: () => engine.close(),
    async connect(withinMs) {
      try {
        return watch(await engine.connect(withinMs))
      } catch (error) {
        throw databaseFault(error)
      }
    },
  }
}

function watch(connection: Connection): Connection {
  let broken = false
  return {
    async query(sql, parameters, name) {
      try {
        return await inQuerySpan(sql, name, () => connection.query(sql, parameters, name))
      } catch (error) {
        broken ||= brokeConnection(error)
        throw databaseFault(error)
      }
    },
    release: (given) => connection.release(broken || given === true),
  }
}
