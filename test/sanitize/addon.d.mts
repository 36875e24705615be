export const root: string
export function sanitizedAddon(): { env?: Record<string, string>; missing?: string }
