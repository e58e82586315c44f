export declare const isDateTime: (text: string) => boolean;
/** Whether a text compares with stored times: no leap second, and four digits of years in UTC. */
export declare const isMoment: (text: string) => boolean;
