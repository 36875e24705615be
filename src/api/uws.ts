/** What the type declarations of uWebSockets.js leave out. */
import * as uWS from 'uWebSockets.js'

/** Sets no permessage-deflate on a WebSocket route. */
export const NO_COMPRESSION = (uWS as unknown as { DISABLED: number }).DISABLED

type Listen = (
  host: string,
  port: number,
  options: number,
  callback: (socket: uWS.us_listen_socket | false) => void,
) => void

/**
 * Listens on `host:port` (0: any free port) and returns the port; undefined when it cannot be had. Exclusive: otherwise a second process would
 * share a taken port in silence (SO_REUSEPORT).
 */
export function listenExclusively(app: uWS.TemplatedApp, host: string, port: number): Promise<number | undefined> {
  const { LIBUS_LISTEN_EXCLUSIVE_PORT } = uWS as unknown as { LIBUS_LISTEN_EXCLUSIVE_PORT: number }
  return new Promise((resolve) => {
    const listen = app.listen.bind(app) as unknown as Listen
    listen(host, port, LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      resolve(socket === false || socket === null ? undefined : uWS.us_socket_local_port(socket))
    })
  })
}
