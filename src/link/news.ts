/** What a server has told a node of the hub's servers: the last of each kind is kept for who hears of it. */
import type { HubNews } from './link.ts'

export class News {
  #servers: HubNews | undefined
  #wish: HubNews | undefined
  #listener: ((news: HubNews) => void) | undefined

  tell(news: HubNews): void {
    if (news.type === 'SERVERS') this.#servers = news
    else this.#wish = news
    this.#listener?.(news)
  }

  /** From now on `listener` hears of it, and nobody else. */
  listen(listener: (news: HubNews) => void): void {
    this.#listener = listener
    for (const news of [this.#servers, this.#wish]) if (news !== undefined) listener(news)
  }
}
