import { type Dialer, type Download, openDownloader, openProxies, type Resolve, systemResolve } from '@tollgate/http'
import { type Judges, openJudges } from './judges.ts'
import { openRobots } from './robots/robots.ts'
import { defaults, type FetchWorkerSettings } from './settings.ts'

export interface WayOut {
  download: Download
  judges: Judges
}

interface WayOutNeeds {
  settings: FetchWorkerSettings
  resolve?: Resolve
  dialer?: Dialer
  ca?: string[]
}

/** The one way from here to the web: the downloader, and the guard that every request of it is judged by. */
export function openWayOut({ settings, resolve = systemResolve, dialer, ca }: WayOutNeeds): WayOut {
  const proxies = settings.proxies ? openProxies(settings.proxies) : undefined
  const download = openDownloader({
    userAgent: defaults.userAgent,
    ...(proxies ? { proxies } : {}),
    ...(dialer ? { dialer } : {}),
    ...(ca ? { ca } : {}),
  })
  const judges = openJudges(resolve, settings.guard)
  if (!settings.respectRobots) return { download, judges }
  const robots = openRobots({ download, agent: defaults.agent })
  return {
    judges,
    download: (request) => download({ ...request, admits: (hop, signal) => robots(hop, request, signal) }),
  }
}
